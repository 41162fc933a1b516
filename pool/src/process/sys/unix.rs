//! The leader of a server's process group, on every Unix.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{self, Child, Command, Stdio},
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use rustix::process::{
    Pid, Signal as Number, WaitIdOptions, WaitIdStatus, getpgid, kill_process, kill_process_group,
    waitid,
};
use tokio::{
    net::unix::pipe,
    process::{ChildStdin, ChildStdout},
    time::sleep,
};

use super::{
    super::{exit::Exit, spec::Spec, table::Identity},
    Signal, platform,
};

/// How often to look where nothing tells of a process's end.
const POLL: Duration = Duration::from_millis(20);

/// The first process of a server. It is not reaped before [`reap`](Self::reap): a dead leader keeps
/// its pid, and so its group's id, from being given to a stranger.
#[derive(Debug)]
pub(crate) struct Leader {
    child: Option<Child>,
    end: Arc<End>,
}

/// How a leader ends, for whoever waits for it; it may outlive the leader.
#[derive(Debug)]
pub(crate) struct End {
    id: Identity,
    exit: OnceLock<Exit>,
    watch: platform::Watch,
}

/// The host's end of a server's stderr.
#[derive(Debug)]
pub(crate) struct StderrPipe(pipe::Receiver);

/// The host's ends of a server's three pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: process::ChildStdin,
    stdout: process::ChildStdout,
    stderr: process::ChildStderr,
}

// === impl Leader ===

impl Leader {
    /// Starts the program in a process group of its own, with `mark` in its environment.
    pub(crate) fn start(spec: &Spec, mark: (&str, &str)) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(spec.program());
        command
            .args(spec.args())
            .env_clear()
            .envs(spec.env())
            .env(mark.0, mark.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(cwd) = spec.cwd() {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let pipes = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .zip(child.stderr.take());
        let pid = child.id();
        // Without a start time (no /proc) the group is ours all the same, until it is reaped.
        let unknown = Identity { pid, start: 0 };
        // From here on its drop ends the process, whatever fails or panics.
        let mut leader = Self {
            child: Some(child),
            end: Arc::new(End::new(unknown, platform::Watch::blind())),
        };
        let id = platform::identity(pid)?.unwrap_or(unknown);
        leader.end = Arc::new(End::new(id, platform::Watch::new(pid)));
        let ((stdin, stdout), stderr) =
            pipes.ok_or_else(|| io::Error::other("a pipe of the child is missing"))?;
        Ok((
            leader,
            Pipes {
                stdin,
                stdout,
                stderr,
            },
        ))
    }

    pub(crate) fn id(&self) -> Identity {
        self.end.id
    }

    /// How it ends, apart from the leader itself.
    pub(crate) fn end(&self) -> Arc<End> {
        Arc::clone(&self.end)
    }

    /// Resolves when the process has ended. Cancel safe; any number may wait.
    pub(crate) async fn exited(&self) -> Exit {
        self.end.exited().await
    }

    /// The same without waiting. Does not reap.
    pub(crate) fn try_exited(&self) -> Option<Exit> {
        self.end.try_exited()
    }

    /// The same, blocking for about `limit` at most.
    pub(crate) fn wait_blocking(&self, limit: Duration) -> Option<Exit> {
        self.end.wait_blocking(limit)
    }

    /// Signals the whole group, while its id is certainly ours.
    pub(crate) fn signal_group(&self, signal: Signal) -> io::Result<()> {
        let Some(pid) = pid(self.end.id.pid).filter(|_| self.is_pinned()) else {
            return Ok(());
        };
        // A leader may have moved to another group. Not both ways where it has not: a handler
        // would run twice.
        let moved = !matches!(getpgid(Some(pid)), Ok(group) if group == pid);
        if moved || signal == Signal::Kill {
            let _ = kill_process(pid, number(signal));
        }
        match kill_process_group(pid, number(signal)) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            // Some systems say so when only zombies are left in the group.
            Err(rustix::io::Errno::PERM) if self.try_exited().is_some() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the process, so that no zombie stays. A process that has not ended yet (it hangs
    /// in the kernel) is left to a thread that waits for it.
    pub(crate) fn reap(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        if self.try_exited().is_some() {
            let _ = child.wait();
            return;
        }
        let waiter = thread::Builder::new().name("steadfast-reaper".to_owned());
        let _ = waiter.spawn(move || child.wait());
    }

    pub(crate) fn is_reaped(&self) -> bool {
        self.child.is_none()
    }

    fn is_pinned(&self) -> bool {
        !self.is_reaped() && self.try_exited() != Some(Exit::Unknown)
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_reaped() {
            let _ = self.signal_group(Signal::Kill);
            self.reap();
        }
    }
}

// === impl End ===

impl End {
    fn new(id: Identity, watch: platform::Watch) -> Self {
        Self {
            id,
            exit: OnceLock::new(),
            watch,
        }
    }

    /// Resolves when the process has ended. Cancel safe; any number may wait.
    pub(crate) async fn exited(&self) -> Exit {
        loop {
            if let Some(exit) = self.try_exited() {
                return exit;
            }
            self.watch.changed().await;
            if let Some(exit) = self.try_exited() {
                return exit;
            }
            // Nothing tells us, or we were told before it can be waited for (a debugger has it).
            sleep(POLL).await;
        }
    }

    /// The same without waiting. Does not reap.
    pub(crate) fn try_exited(&self) -> Option<Exit> {
        if let Some(exit) = self.exit.get() {
            return Some(*exit);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let pid = pid(self.id.pid)?;
        let exit = match waitid(self.watch.wait_id(pid), options) {
            Ok(None) => return None,
            Ok(Some(status)) => exit_of(&status),
            // Somebody else reaped it.
            Err(rustix::io::Errno::CHILD) => Exit::Unknown,
            Err(_) => return None,
        };
        Some(*self.exit.get_or_init(|| exit))
    }

    /// The same, blocking for about `limit` at most.
    pub(crate) fn wait_blocking(&self, limit: Duration) -> Option<Exit> {
        if self.watch.wait(limit) {
            return self.try_exited();
        }
        for _ in 0..limit.as_millis() / POLL.as_millis() {
            if self.try_exited().is_some() {
                break;
            }
            thread::sleep(POLL);
        }
        self.try_exited()
    }
}

// === impl Pipes ===

impl Pipes {
    /// Registers them with the current runtime.
    pub(crate) fn register(self) -> io::Result<(ChildStdin, ChildStdout, StderrPipe)> {
        Ok((
            ChildStdin::from_std(self.stdin)?,
            ChildStdout::from_std(self.stdout)?,
            StderrPipe(pipe::Receiver::from_owned_fd(OwnedFd::from(self.stderr))?),
        ))
    }
}

// === impl StderrPipe ===

impl StderrPipe {
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Reads if the runtime has been told that there is something.
    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buf)
    }

    /// Reads without asking the runtime, which may not have heard of the last words yet.
    pub(crate) fn read_now(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(&self.0, buf)?)
    }
}

pub(super) fn number(signal: Signal) -> Number {
    match signal {
        Signal::Term => Number::TERM,
        Signal::Kill => Number::KILL,
    }
}

/// `None` for a number that is no pid.
pub(super) fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(number)) => Exit::Signal(number),
        (None, None) => Exit::Unknown,
    }
}
