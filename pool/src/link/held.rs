//! A process that is ended by whoever comes first.

use std::{
    future::{self, poll_fn},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt};

use super::Closed;
use crate::{
    process::{Exit, Grace, Process, Shutdown, StderrTail, Step},
    wire::WireTasks,
};

/// A server's process, ended by its connection's own end or by a pool that is dropped,
/// even while it is being ended kindly.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pid: u32,
    stderr: StderrTail,
    hold: Arc<Mutex<Hold>>,
}

/// What there is of a process. Dropping it kills all of it before it returns.
#[derive(Default)]
enum Hold {
    Running(Process),
    Ending {
        shutdown: BoxFuture<'static, Shutdown>,
        waker: Option<Waker>,
    },
    #[default]
    Gone,
}

/// All processes that one connector started and that are left.
#[derive(Debug, Default)]
pub(super) struct Started(Mutex<Processes>);

#[derive(Debug, Default)]
struct Processes {
    held: Vec<Weak<Mutex<Hold>>>,
    over: bool,
}

// === impl Held ===

impl Held {
    pub(super) fn new(process: Process) -> Self {
        Self {
            pid: process.pid(),
            stderr: process.stderr().clone(),
            hold: Arc::new(Mutex::new(Hold::Running(process))),
        }
    }

    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// The last that it wrote to its standard error.
    pub(super) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Resolves when the process has ended; never, where somebody is ending it.
    pub(super) async fn exited(&self) -> Exit {
        let exit = match &*lock(&self.hold) {
            Hold::Running(process) => Some(process.exit()),
            Hold::Ending { .. } | Hold::Gone => None,
        };
        match exit {
            Some(exit) => exit.await,
            None => future::pending().await,
        }
    }

    /// Closes the process's input and ends it step by step, and all that descends from it.
    /// Its output is read to the last: it may have something to write before it ends.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it leaves the process as it is; call [`kill`](Self::kill) then.
    pub(super) async fn shutdown(&self, wire: WireTasks, grace: Grace) -> Closed {
        {
            let mut hold = lock(&self.hold);
            if let Hold::Running(process) = mem::take(&mut *hold) {
                *hold = Hold::Ending {
                    shutdown: end(process, wire, grace).boxed(),
                    waker: None,
                };
            }
        }
        poll_fn(|cx| lock(&self.hold).poll(cx)).await
    }

    /// Kills the process and all that descends from it before it returns.
    pub(super) fn kill(&self) {
        kill(&self.hold);
    }
}

async fn end(mut process: Process, mut wire: WireTasks, grace: Grace) -> Shutdown {
    // One that ends at once leaves children that nobody can tell from strangers.
    if process.try_exited().is_none() {
        process.note_descendants().await;
    }
    wire.close_input().await;
    process.shutdown(grace).await
}

// === impl Hold ===

impl Hold {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Closed> {
        let Self::Ending { shutdown, waker } = self else {
            // Somebody was quicker, and killed it.
            return Poll::Ready(Closed::unproven(Duration::ZERO));
        };
        match shutdown.poll_unpin(cx) {
            Poll::Ready(shutdown) => {
                *self = Self::Gone;
                Poll::Ready(shutdown.into())
            }
            Poll::Pending => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn into_running(self) -> Option<Process> {
        match self {
            Self::Running(process) => Some(process),
            Self::Ending { .. } | Self::Gone => None,
        }
    }

    /// Kills what is held, and tells whoever was ending it.
    fn kill(self) {
        if let Self::Ending { shutdown, waker } = self {
            drop(shutdown);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Running(_) => "Running",
            Self::Ending { .. } => "Ending",
            Self::Gone => "Gone",
        })
    }
}

fn kill(hold: &Mutex<Hold>) {
    let held = mem::take(&mut *lock(hold));
    // Killing takes a moment, so not under the lock.
    held.kill();
}

fn lock(hold: &Mutex<Hold>) -> MutexGuard<'_, Hold> {
    hold.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Started ===

impl Started {
    /// `false`: everything is to end, this one too.
    pub(super) fn remember(&self, held: &Held) -> bool {
        let mut processes = self.processes();
        processes.held.retain(|held| held.strong_count() > 0);
        processes.held.push(Arc::downgrade(&held.hold));
        !processes.over
    }

    /// Kills everything that is left, and returns when it is dead. Nothing may be started
    /// after it.
    pub(super) fn kill_all(&self) {
        let started = {
            let mut processes = self.processes();
            processes.over = true;
            mem::take(&mut processes.held)
        };
        let started = started.iter().filter_map(Weak::upgrade);
        let (running, rest): (Vec<_>, Vec<_>) = started
            .map(|hold| mem::take(&mut *lock(&hold)))
            .partition(|held| matches!(held, Hold::Running(_)));
        Process::kill_all(running.into_iter().filter_map(Hold::into_running));
        rest.into_iter().for_each(Hold::kill);
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Closed ===

impl From<Shutdown> for Closed {
    fn from(shutdown: Shutdown) -> Self {
        Self {
            killed: shutdown.step == Step::Kill,
            survivors: shutdown.survivors,
            took: shutdown.took,
        }
    }
}
