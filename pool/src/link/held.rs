//! A process that is ended by whoever comes first.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{Closed, Lost};
use crate::process::{Exit, Process, Shutdown, Step};

/// A server's process, ended by its connection's own end or by a pool that is dropped.
#[derive(Clone, Debug)]
pub(super) struct Held(Arc<Mutex<Option<Process>>>);

/// All processes that one connector started and that are left.
#[derive(Debug, Default)]
pub(super) struct Started(Mutex<Vec<Weak<Mutex<Option<Process>>>>>);

// === impl Held ===

impl Held {
    pub(super) fn new(process: Process) -> Self {
        Self(Arc::new(Mutex::new(Some(process))))
    }

    /// The process, for whoever ends it. Dropping it kills all of it before it returns.
    pub(super) fn take(&self) -> Option<Process> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn with<T>(&self, ask: impl FnOnce(&Process) -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(ask)
    }

    pub(super) fn stderr(&self) -> Option<String> {
        self.with(Process::stderr_tail)
    }
}

/// Resolves when the process has ended; never, where there is none.
pub(super) async fn exited(process: Option<&Held>) -> Exit {
    match process.and_then(|held| held.with(Process::exit)) {
        Some(exit) => exit.await,
        None => future::pending().await,
    }
}

// === impl Started ===

impl Started {
    pub(super) fn remember(&self, held: &Held) {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.retain(|held| held.strong_count() > 0);
        started.push(Arc::downgrade(&held.0));
    }

    /// Kills everything that is left, and returns when it is dead.
    pub(super) fn kill_all(&self) {
        let started = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for held in started.iter().filter_map(Weak::upgrade) {
            drop(Held(held).take());
        }
    }
}

// === impl Lost ===

impl Lost {
    /// Adds how the server's process ended, and what it wrote last.
    pub(super) fn with_process(mut self, exit: Option<Exit>, stderr: Option<String>) -> Self {
        self.exit = exit.map(|exit| exit.to_string().into());
        self.stderr = stderr
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .map(Into::into);
        self
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
