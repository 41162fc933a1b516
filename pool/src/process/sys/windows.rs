//! Windows: a job object holds the server and all that descends from it, and ends them with its last
//! handle, so that also a killed host takes them along. Not compiled in CI.

use std::{
    collections::VecDeque,
    io,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::{
    io::AsyncReadExt,
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync,
    time::sleep,
};

use super::{
    super::{
        exit::Exit,
        spec::Spec,
        table::{Identity, ProcessTable},
    },
    Sent, Signal,
};

const POLL: Duration = Duration::from_millis(20);

const CHUNK: usize = 8 * 1024;

/// The first process of a server, in a job of its own. Its open handle keeps its pid from reuse.
#[derive(Debug)]
pub(crate) struct Leader(Arc<End>);

/// How a leader ends, for whoever waits for it; it may outlive the leader.
#[derive(Debug)]
pub(crate) struct End {
    job: Mutex<Option<Box<dyn ChildWrapper>>>,
    pid: u32,
    exit: OnceLock<Exit>,
}

#[derive(Debug)]
pub(crate) struct Pipes(ChildStdin, ChildStdout, ChildStderr);

/// What was read of stderr and not asked for yet; reading without waiting is not possible here.
#[derive(Debug)]
pub(crate) struct StderrPipe {
    pipe: sync::Mutex<ChildStderr>,
    read: Mutex<(VecDeque<u8>, bool)>,
}

/// The job objects do its work.
#[derive(Debug)]
pub(crate) struct Guard;

// === impl Leader ===

impl Leader {
    pub(crate) fn start(spec: &Spec, mark: (&str, &str)) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(spec.program());
        command
            .args(spec.args())
            .env_clear()
            .envs(spec.env())
            .env(mark.0, mark.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = spec.cwd() {
            command.current_dir(cwd);
        }
        let mut job = CommandWrap::from(command)
            .wrap(KillOnDrop)
            .wrap(JobObject)
            .spawn()?;
        let stdin = job.stdin().take();
        let pipes = stdin.zip(job.stdout().take()).zip(job.stderr().take());
        let missing = || io::Error::other("a pipe of the child is missing");
        let ((stdin, stdout), stderr) = pipes.ok_or_else(missing)?;
        let pid = job.id().ok_or_else(missing)?;
        let end = End {
            job: Mutex::new(Some(job)),
            pid,
            exit: OnceLock::new(),
        };
        Ok((Self(Arc::new(end)), Pipes(stdin, stdout, stderr)))
    }

    pub(crate) fn id(&self) -> Identity {
        Identity {
            pid: self.0.pid,
            start: 0,
        }
    }

    pub(crate) fn end(&self) -> Arc<End> {
        Arc::clone(&self.0)
    }

    pub(crate) async fn exited(&self) -> Exit {
        self.0.exited().await
    }

    pub(crate) fn try_exited(&self) -> Option<Exit> {
        self.0.try_exited()
    }

    pub(crate) fn wait_blocking(&self, limit: Duration) -> Option<Exit> {
        for _ in 0..limit.as_millis() / POLL.as_millis() {
            if self.try_exited().is_some() {
                break;
            }
            thread::sleep(POLL);
        }
        self.try_exited()
    }

    /// There is no `SIGTERM`, so that step only waits.
    pub(crate) fn signal_group(&self, signal: Signal) -> io::Result<()> {
        match (signal, self.0.job().as_mut()) {
            (Signal::Kill, Some(job)) => job.start_kill(),
            _ => Ok(()),
        }
    }

    /// Ends what is left in the job and closes it.
    pub(crate) fn reap(&mut self) {
        self.try_exited();
        if let Some(mut job) = self.0.job().take() {
            let _ = job.start_kill();
        }
    }

    pub(crate) fn is_reaped(&self) -> bool {
        self.0.job().is_none()
    }
}

// === impl End ===

impl End {
    pub(crate) async fn exited(&self) -> Exit {
        loop {
            if let Some(exit) = self.try_exited() {
                return exit;
            }
            sleep(POLL).await;
        }
    }

    pub(crate) fn try_exited(&self) -> Option<Exit> {
        if let Some(exit) = self.exit.get() {
            return Some(*exit);
        }
        let exit = match self.job().as_mut()?.try_wait() {
            Ok(status) => status?.code().map_or(Exit::Unknown, Exit::Code),
            Err(_) => return None,
        };
        Some(*self.exit.get_or_init(|| exit))
    }

    fn job(&self) -> MutexGuard<'_, Option<Box<dyn ChildWrapper>>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Pipes ===

impl Pipes {
    pub(crate) fn register(self) -> io::Result<(ChildStdin, ChildStdout, StderrPipe)> {
        let stderr = StderrPipe {
            pipe: sync::Mutex::new(self.2),
            read: Mutex::default(),
        };
        Ok((self.0, self.1, stderr))
    }
}

// === impl StderrPipe ===

impl StderrPipe {
    pub(crate) async fn readable(&self) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        let n = self.pipe.lock().await.read(&mut chunk).await?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.0.extend(&chunk[..n]);
        read.1 = n == 0;
        Ok(())
    }

    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match read.0.len().min(buf.len()) {
            0 if read.1 => Ok(0),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => {
                for (to, from) in buf.iter_mut().zip(read.0.drain(..n)) {
                    *to = from;
                }
                Ok(n)
            }
        }
    }

    pub(crate) fn read_now(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_read(buf)
    }
}

// === impl Guard ===

impl Guard {
    pub(crate) fn start(_pattern: &str) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        None
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        true
    }

    pub(crate) fn tell(&mut self, _line: &str) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn on_death(&self, _has_ended: impl Fn() -> bool + Send + 'static) {}
}

/// Nothing leaves a job, so nobody is ever looked for.
pub(crate) fn table(_since: u64, _prefix: &[u8]) -> io::Result<ProcessTable> {
    Ok(ProcessTable::new(Vec::new()))
}

pub(crate) fn signal(_id: Identity, _signal: Signal) -> io::Result<Sent> {
    Ok(Sent::Gone)
}

pub(crate) fn is_alive(_id: Identity) -> bool {
    false
}
