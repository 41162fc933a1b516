//! The process behind the watchdog, on every Unix.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

use super::platform::Watch;

/// Reads `+ group` and `- group`; at the end of its input it kills the groups that are left. Its
/// argument is what the descendants of our servers have in their environment: those that left their
/// group are found by it, where there is a /proc. A group that was seen empty is dropped at once, so
/// that an id that is used again later is not signalled.
const SCRIPT: &str = include_str!("../watchdog.sh");

/// How often to look where nothing tells of the process's end.
const POLL: Duration = Duration::from_secs(1);

/// A running watchdog. Dropping it ends it, without a signal to anybody else.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    stdin: ChildStdin,
}

// === impl Guard ===

impl Guard {
    /// Starts it with an environment of its own: the mark of an outer pool must not be in it, or
    /// that pool would take it for a stray of the server that we are.
    pub(crate) fn start(pattern: &str) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "steadfast-watchdog", pattern])
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C and the end of a terminal go to the host's group.
            .process_group(0);
        let mut child = command.spawn()?;
        let Some(stdin) = child.stdin.take() else {
            return Err(io::Error::other("the pipe to the watchdog is missing"));
        };
        let guard = Self { child, stdin };
        // A watchdog that was stopped must not stop the pool when its pipe is full.
        rustix::io::ioctl_fionbio(&guard.stdin, true)?;
        Ok(guard)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        Some(self.child.id())
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// One line, far below what a pipe takes whole or not at all.
    pub(crate) fn tell(&mut self, line: &str) -> io::Result<()> {
        self.stdin.write_all(line.as_bytes())
    }

    /// Asks `has_ended` when the process seems to have ended, until it says so. Outside a runtime
    /// nobody asks.
    pub(crate) fn on_death(&self, has_ended: impl Fn() -> bool + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let watch = Watch::new(self.child.id());
        runtime.spawn(async move {
            loop {
                watch.changed().await;
                if has_ended() {
                    return;
                }
                sleep(POLL).await;
            }
        });
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Before its input is closed: with groups on its list it would kill them.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
