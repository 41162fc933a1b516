//! What a station keeps under its lock.

use std::{collections::BTreeSet, sync::Arc};

use steadfast_classify::Failure;
use tokio::{task::AbortHandle, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    machine::{Machine, Rules},
    tasks::Tasks,
};
use crate::{Closed, Flaw, Link, view::Catalog};

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    /// Kept until it is proven gone, so that it can be killed.
    pub(super) connection: Option<Connection>,
    pub(super) tasks: Tasks,
    pub(super) catalog: Arc<Catalog>,
    /// Whether the server said that the list is another one, and it is not here yet.
    pub(super) outdated: bool,
    /// Tools that were told to be missing.
    pub(super) missing: BTreeSet<Arc<str>>,
    pub(super) start: Start,
    pub(super) failed: Option<Failed>,
    pub(super) index: Option<u32>,
    pub(super) restarts: u32,
    /// Whether the next connection carries on the index of the last.
    pub(super) restarting: bool,
    pub(super) last_error: Option<Failure>,
    pub(super) last_closed: Option<Closed>,
    pub(super) owner: Option<AbortHandle>,
    /// The bound of a drain, once there is one.
    pub(super) close_by: Option<Instant>,
}

/// A connection that has been made.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) link: Arc<dyn Link>,
    /// Cancelled once it is of no use to any call.
    pub(super) gone: CancellationToken,
    /// Counts the calls on it.
    pub(super) calls: TaskTracker,
}

/// The start that is under way, or the last there was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Start {
    /// Counts starts, so that everyone who waited for one gets that one's failure.
    pub(super) epoch: u64,
    /// When it began; `None` while it waits for its turn.
    pub(super) began: Option<Began>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    pub(super) at: Instant,
    /// When whoever makes it gives up.
    pub(super) by: Instant,
}

/// A start that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) epoch: u64,
    pub(super) failure: Failure,
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(link: Arc<dyn Link>) -> Self {
        Self {
            link,
            gone: CancellationToken::new(),
            calls: TaskTracker::new(),
        }
    }
}

// === impl State ===

impl State {
    pub(super) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            machine: Machine::new(rules, now),
            connection: None,
            tasks: Tasks::default(),
            catalog: Arc::default(),
            outdated: false,
            missing: BTreeSet::new(),
            start: Start::default(),
            failed: None,
            index: None,
            restarts: 0,
            restarting: false,
            last_error: None,
            last_closed: None,
            owner: None,
            close_by: None,
        }
    }

    /// The failure of the start with this number, or of a later one.
    pub(super) fn failure_since(&self, epoch: u64) -> Option<&Failure> {
        self.failed
            .as_ref()
            .filter(|failed| failed.epoch >= epoch)
            .map(|failed| &failed.failure)
    }

    /// Whether the server surely has no such tool.
    pub(super) fn lacks(&self, tool: &str) -> bool {
        let announced = |connection: &Connection| connection.link.announces_tools();
        let tools = &self.catalog.tools;
        let known = tools.generation > 0 && tools.stale.is_none() && !self.outdated;
        // What could not be read may be what is called.
        let understood = !tools.flaws.iter().any(Flaw::is_unreadable);
        known
            && understood
            && self.catalog.tool(tool).is_none()
            && self.connection.as_ref().is_some_and(announced)
    }

    /// The calls on the connection end, and nobody gets it any more.
    pub(super) fn sever(&self) {
        if let Some(connection) = &self.connection {
            connection.gone.cancel();
        }
    }
}
