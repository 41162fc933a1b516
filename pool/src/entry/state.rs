//! What a station keeps under its lock.

use std::sync::Arc;

use steadfast_classify::Failure;
use tokio::{task::AbortHandle, time::Instant};

use super::{
    machine::{Machine, Rules},
    tools::ToolList,
};
use crate::Link;

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) link: Option<Arc<dyn Link>>,
    pub(super) tools: Arc<ToolList>,
    /// Counts starts, so that everyone who waited for one gets that one's failure.
    pub(super) epoch: u64,
    pub(super) failed: Option<Failed>,
    pub(super) index: Option<u32>,
    pub(super) restarts: u32,
    /// Whether the next connection carries on the index of the last.
    pub(super) restarting: bool,
    pub(super) last_error: Option<Failure>,
    pub(super) owner: Option<AbortHandle>,
    /// Whether the last connection had to be killed.
    pub(super) killed: bool,
    /// The bound of a drain, once there is one.
    pub(super) close_by: Option<Instant>,
}

/// A start that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) epoch: u64,
    pub(super) failure: Failure,
}

// === impl State ===

impl State {
    pub(super) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            machine: Machine::new(rules, now),
            link: None,
            tools: Arc::default(),
            epoch: 0,
            failed: None,
            index: None,
            restarts: 0,
            restarting: false,
            last_error: None,
            owner: None,
            killed: false,
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
}
