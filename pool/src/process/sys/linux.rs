//! Linux: pidfds and /proc.

use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, WaitId, kill_process, pidfd_open, pidfd_send_signal},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    super::table::{Identity, ProcessTable, Row},
    Sent, Signal, mark_in,
    unix::{number, pid as raw_pid},
};

const PROC: &str = "/proc";

/// The kernel's own limit for an environment is below this, unless somebody raised it.
const MAX_READ: u64 = 4 << 20;

/// Tells when a process ends. Without a pidfd (kernels before 5.3, a sandbox that forbids it) it
/// tells nothing and its users look from time to time.
#[derive(Debug)]
pub(super) struct Watch(Option<AsyncFd<OwnedFd>>);

// === impl Watch ===

impl Watch {
    pub(super) fn blind() -> Self {
        Self(None)
    }

    pub(super) fn new(pid: u32) -> Self {
        let fd = raw_pid(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        #[allow(
            deprecated,
            reason = "deprecated for types whose descriptor may change; that of an OwnedFd cannot, \
                      and the successor is an unsafe fn"
        )]
        let register = |fd| AsyncFd::with_interest(fd, Interest::READABLE).ok();
        Self(fd.and_then(register))
    }

    /// Waits for a sign that the process may have ended; returns at once if none will ever come.
    pub(super) async fn changed(&self) {
        if let Some(fd) = &self.0 {
            // The descriptor stays readable for ever, which is right for the other waiters too.
            // It is an error once the runtime it was registered with has gone.
            let _ = fd.readable().await;
        }
    }

    /// The same, blocking for at most `limit`. `false` if it did not wait.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        let (Some(fd), Ok(limit)) = (&self.0, Timespec::try_from(limit)) else {
            return false;
        };
        poll(
            &mut [PollFd::new(fd.get_ref(), PollFlags::IN)],
            Some(&limit),
        )
        .is_ok()
    }

    /// What to wait for: the descriptor, since it is never reused.
    pub(super) fn wait_id(&self, pid: Pid) -> WaitId<'_> {
        match &self.0 {
            Some(fd) => WaitId::PidFd(fd.get_ref().as_fd()),
            None => WaitId::Pid(pid),
        }
    }
}

/// Sends a signal to exactly this process, never to one that got its pid later.
pub(crate) fn signal(id: Identity, signal: Signal) -> io::Result<Sent> {
    let Some(pid) = raw_pid(id.pid) else {
        return Ok(Sent::Gone);
    };
    // The descriptor pins whoever has the pid now; only then is it checked who that is.
    let fd = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(Sent::Gone),
        other => other.ok(),
    };
    if identity(id.pid)? != Some(id) {
        return Ok(Sent::Gone);
    }
    let sent = match fd {
        Some(fd) => pidfd_send_signal(fd.as_fd(), number(signal)),
        None => kill_process(pid, number(signal)),
    };
    match sent {
        Ok(()) => Ok(Sent::Delivered),
        Err(Errno::SRCH) => Ok(Sent::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Who has this pid now, dead or alive.
pub(crate) fn identity(pid: u32) -> io::Result<Option<Identity>> {
    Ok(read_row(Path::new(PROC), pid)?.map(|row| row.id))
}

/// Whether this process still runs; a zombie does not. What cannot be read may be alive.
pub(crate) fn is_alive(id: Identity) -> bool {
    match read_row(Path::new(PROC), id.pid) {
        Ok(row) => row.is_some_and(|row| row.id == id && !row.dead),
        Err(_) => true,
    }
}

/// One pass over all processes. The environment is read only of those that started at `since` or
/// later, which is few; a mark in it begins with `prefix`.
pub(crate) fn table(since: u64, prefix: &[u8]) -> io::Result<ProcessTable> {
    table_in(Path::new(PROC), since, prefix)
}

fn table_in(root: &Path, since: u64, prefix: &[u8]) -> io::Result<ProcessTable> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(mut row) = read_row(root, pid)? {
            if !row.dead && row.id.start >= since {
                row.mark = read_mark(root, pid, prefix)?;
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(io::Error::new(ErrorKind::NotFound, "it shows no process"));
    }
    Ok(ProcessTable::new(rows))
}

fn read_row(root: &Path, pid: u32) -> io::Result<Option<Row>> {
    Ok(read(root, pid, "stat")?.and_then(|stat| parse_stat(&stat)))
}

fn read_mark(root: &Path, pid: u32, prefix: &[u8]) -> io::Result<Option<u64>> {
    let environ = read(root, pid, "environ")?.unwrap_or_default();
    let mut variables = environ.split(|byte| *byte == 0);
    Ok(variables.find_map(|variable| mark_in(variable, prefix)))
}

/// `None` for a process that has ended meanwhile, or is not for us to see, so not ours. Anything
/// else (no descriptor left) would hide processes that are, and is an error.
fn read(root: &Path, pid: u32, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let read = File::open(root.join(pid.to_string()).join(name))
        .and_then(|file| file.take(MAX_READ).read_to_end(&mut content));
    match read {
        Ok(_) => Ok(Some(content)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => Ok(None),
            _ if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            _ => Err(error),
        },
    }
}

/// `pid (name) state ppid pgrp session … starttime …`; the name may hold spaces and parentheses.
fn parse_stat(stat: &[u8]) -> Option<Row> {
    let stat = String::from_utf8_lossy(stat);
    let (pid, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let ppid = fields.next()?.parse().ok()?;
    let pgid = fields.next()?.parse().ok()?;
    // Fields 20 and 22 of the line, the last taken being field 5.
    let threads: u32 = fields.nth(14)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // The line is the first thread's: where that has ended, others may run on.
    let dead = ended && threads <= 1;
    let id = Identity {
        pid: pid.parse().ok()?,
        start,
    };
    Some(Row {
        id,
        ppid,
        pgid,
        dead,
        mark: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) S (b) R 7 41 40 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 1 0 98765 1 2 3\n";

        let row = parse_stat(line).unwrap();

        assert_eq!(
            row.id,
            Identity {
                pid: 42,
                start: 98765
            }
        );
        assert_eq!((row.ppid, row.pgid, row.dead), (7, 41, false));
    }

    #[test]
    fn a_zombie_is_dead_and_half_a_line_is_nothing() {
        let zombie = b"42 (sh) Z 7 41 40 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 1 0 98765 1 2 3\n";

        assert!(parse_stat(zombie).unwrap().dead);
        for line in [&b""[..], b"42 (sh", b"42 (sh) S 7 41", b"x (sh) S 7 41 40"] {
            assert!(
                parse_stat(line).is_none(),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_lives_as_long_as_another_does() {
        let line = b"42 (sh) Z 7 41 40 0 -1 4194560 1 0 0 0 2 3 0 0 20 0 2 0 98765 1 2 3\n";

        let row = parse_stat(line).unwrap();

        assert!(!row.dead);
        assert_eq!(row.id.start, 98765);
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_somebody_else() {
        let us = identity(std::process::id()).unwrap().unwrap();
        let stranger = Identity {
            start: us.start + 1,
            ..us
        };

        assert!(is_alive(us));
        assert!(!is_alive(stranger));
        // Would end the test run if it were delivered.
        assert_eq!(signal(stranger, Signal::Kill).unwrap(), Sent::Gone);
    }

    #[test]
    fn no_proc_is_an_error_and_not_an_empty_table() {
        let empty = tempfile::tempdir().unwrap();
        let us = identity(std::process::id()).unwrap().unwrap();

        assert!(table_in(&empty.path().join("absent"), us.start, b"X=").is_err());
        assert!(table_in(empty.path(), us.start, b"X=").is_err());
    }

    #[test]
    fn a_process_that_cannot_be_read_is_an_error_and_one_that_ended_is_not() {
        let root = tempfile::tempdir().unwrap();
        let us = identity(std::process::id()).unwrap().unwrap();
        let stat = fs::read("/proc/self/stat").unwrap();
        fs::create_dir_all(root.path().join("1")).unwrap(); // ended: nothing in it
        fs::create_dir_all(root.path().join("2")).unwrap();
        fs::write(root.path().join("2/stat"), stat).unwrap();
        assert!(table_in(root.path(), us.start, b"X=").is_ok());

        fs::create_dir(root.path().join("2/environ")).unwrap(); // reading it fails
        assert!(table_in(root.path(), us.start, b"X=").is_err());

        fs::create_dir_all(root.path().join("3/stat")).unwrap();
        assert!(read_row(root.path(), 3).is_err());
    }
}
