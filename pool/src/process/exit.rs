use std::fmt;

/// How a server's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It exited by itself with this status.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// It ended, but somebody else collected its status (a host that ignores `SIGCHLD`, or that
    /// waits for every child because it is process 1).
    Unknown,
}

// === impl Exit ===

impl Exit {
    /// Whether the process exited by itself with status 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(number) => match signal_name(number) {
                Some(name) => write!(f, "killed by signal {number} ({name})"),
                None => write!(f, "killed by signal {number}"),
            },
            Self::Unknown => f.write_str("ended with unknown status"),
        }
    }
}

/// Only the numbers that are the same on every Unix.
const fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_the_process_ended() {
        for (exit, want) in [
            (Exit::Code(3), "exited with status 3"),
            (Exit::Signal(9), "killed by signal 9 (SIGKILL)"),
            (Exit::Signal(64), "killed by signal 64"),
            (Exit::Unknown, "ended with unknown status"),
        ] {
            assert_eq!(exit.to_string(), want, "{exit:?}");
        }
    }
}
