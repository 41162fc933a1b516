//! What a pool tells of itself as it happens.

use std::{sync::Arc, time::Duration};

use steadfast_classify::Failure;
use tokio::sync::broadcast;

use crate::{Closed, Flaw, Lost};

/// Something that happened in a pool.
///
/// Sent outside of every lock, to a bounded buffer: a receiver that does not keep up
/// loses the oldest and is told how many. The events of one entry come in the order in
/// which they happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PoolEvent {
    /// A connection is usable.
    #[non_exhaustive]
    Connected {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// The server's process, if it is one that the pool started.
        pid: Option<u32>,
        /// Whether it replaces one that was restarted on purpose.
        restarted: bool,
        /// How long it took, its lists included.
        took: Duration,
    },
    /// A connection could not be made.
    #[non_exhaustive]
    StartFailed {
        /// The server.
        server: Arc<str>,
        /// Why.
        failure: Failure,
    },
    /// A connection ended by itself. Its [`Detached`](Self::Detached) follows.
    #[non_exhaustive]
    Failed {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// What was seen of its end.
        lost: Lost,
    },
    /// The sessions that hold an entry have no connection any more. Their leases stay.
    #[non_exhaustive]
    Detached {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// Why.
        reason: DetachReason,
    },
    /// Nothing is left of a connection.
    #[non_exhaustive]
    Closed {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// How it ended.
        closed: Closed,
    },
    /// The server's lists of tools, prompts or resources are others, or could not be had
    /// anew.
    #[non_exhaustive]
    ListsChanged {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// Why a list could not be had, if so; the last good one stays.
        stale: Option<Failure>,
    },
    /// Something is left out of one of the server's lists. Told when it is connected, and
    /// when that changes.
    #[non_exhaustive]
    ListFlawed {
        /// The server.
        server: Arc<str>,
        /// The entry's number.
        entry_index: u32,
        /// Which list: `tools`, `prompts`, `resources` or `resource templates`.
        list: &'static str,
        /// What is left out, and why.
        flaws: Arc<[Flaw]>,
    },
    /// The configuration of a session names tools that the server does not have, in
    /// `includeTools` or `steadfast.tools`. Told once of each.
    #[non_exhaustive]
    ToolsMissing {
        /// The server.
        server: Arc<str>,
        /// The names, sorted.
        tools: Vec<Arc<str>>,
    },
    /// Server names take 75 % of the slots. Not told again before they took less than
    /// half of that.
    #[non_exhaustive]
    SlotsWarning {
        /// How many names hold a slot.
        held: usize,
        /// How many may.
        limit: usize,
    },
    /// Servers were refused for want of a slot; all those of one
    /// [`acquire_all`](crate::Session::acquire_all) together.
    #[non_exhaustive]
    SlotsRefused {
        /// The session that asked.
        session: Arc<str>,
        /// The servers, in the order in which they were asked for.
        servers: Vec<Arc<str>>,
        /// How many names may hold a slot.
        limit: usize,
    },
    /// The pool was drained.
    #[non_exhaustive]
    Drained {
        /// How many connections ended in time.
        drained: usize,
        /// How many had to be killed.
        forced: usize,
    },
}

/// Why sessions have no connection any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DetachReason {
    /// It ended by itself.
    Failed,
    /// Nobody held it for long enough.
    Idle,
    /// It is being restarted.
    Restart,
    /// The server was taken out of the pool.
    Retired,
    /// The pool is draining.
    Drained,
}

/// Where events go to.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<PoolEvent>);

/// More than a pool of a hundred servers tells while somebody looks away for a moment.
const BUFFER: usize = 1024;

// === impl DetachReason ===

impl DetachReason {
    /// The name used in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Idle => "idle",
            Self::Restart => "restart",
            Self::Retired => "retired",
            Self::Drained => "drained",
        }
    }
}

// === impl Events ===

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BUFFER))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<PoolEvent> {
        self.0.subscribe()
    }

    /// Tells whoever listens, if anybody does.
    pub(crate) fn send(&self, event: impl FnOnce() -> PoolEvent) {
        if self.0.receiver_count() > 0 {
            // They may all have left just now.
            let _ = self.0.send(event());
        }
    }
}
