//! What a [`Machine`](super::machine::Machine) can be asked, and what it answers.

use std::time::Duration;

use tokio::time::Instant;

/// Grows when the server is retired. Who came before that has nothing to ask for any
/// more, and gives nothing back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Era(u64);

/// Where a key's connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Vacant,
    Starting,
    Active {
        since: Instant,
    },
    /// Nobody new may use it; the calls that run may finish until then.
    Leaving {
        why: Why,
        until: Instant,
    },
    Closing(Why),
}

/// Why a connection is being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Nobody waited any more for its start.
    Abandoned,
    /// It ended by itself.
    Lost,
    /// Nobody held it for its grace, or its idle allowance was used up.
    Idle,
    /// It is being restarted.
    Restart,
    /// Its owner removed it.
    Retired,
    /// The pool is draining.
    Drained,
}

/// What somebody who needs the connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Use it.
    Ready,
    /// Wait for the next change.
    Wait,
    /// Start it: the machine is `Starting` now, and the caller has to see to it.
    Start,
    /// No attempt is allowed for this long.
    Later(Duration),
    /// Never again.
    Never(Never),
}

/// Why somebody gets no connection any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    Retired,
    Drained,
}

/// What there is to restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restarting {
    /// Nobody has anything of it.
    Nothing,
    /// A start is under way that began before: it is waited for.
    Joins,
    /// The connection, if there is one, is being closed to make room for the next.
    Begins,
}

// === impl Era ===

impl Era {
    pub(super) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
