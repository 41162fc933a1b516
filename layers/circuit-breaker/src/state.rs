//! What can be seen of a circuit.

use std::{fmt, sync::Arc, time::Duration};

use steadfast_classify::Class;
use tokio::time::Instant;

/// The state of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Calls pass.
    Closed,
    /// Calls are turned away until the open time is over; the first one after that is a
    /// probe.
    Open,
    /// One probe at a time passes, other calls are turned away.
    HalfOpen,
    /// Calls are turned away until somebody resets it.
    Isolated,
}

/// Why a circuit is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenCause {
    /// Too many failures in a row.
    ConsecutiveFailures,
    /// Too large a share of failures.
    FailureRate,
    /// Too large a share of slow calls.
    SlowCallRate,
    /// A probe failed.
    ProbeFailed,
    /// Somebody isolated it.
    Isolated,
}

/// A change of a circuit's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The state it left.
    pub from: State,
    /// The state it is in since.
    pub to: State,
    /// Why it is not closed: half open it is still the reason for which it opened. `None`
    /// if it is closed.
    pub cause: Option<OpenCause>,
    /// The class of the failure it opened by, if one did.
    pub class: Option<Class>,
    /// How often it has opened since it was last healthy, up to 63.
    pub trips: u32,
    /// How long it stays open, if it opened.
    pub open_for: Option<Duration>,
    /// When.
    pub at: Instant,
    /// Counts the changes, and starts again after 2²⁰ of them.
    pub generation: u32,
}

/// What a circuit looked like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The name of the breaker.
    pub name: Arc<str>,
    /// Which of a keyed breaker's circuits it is, as the key's `Debug` prints it.
    pub key: Option<Arc<str>>,
    /// Its state. Open stays open, with nothing left in [`retry_in`](Self::retry_in), until
    /// a call comes that can be the probe.
    pub state: State,
    /// Why it is not closed.
    pub cause: Option<OpenCause>,
    /// How often it has opened since it was last healthy, up to 63. A closed one forgets it
    /// only when it opens again.
    pub trips: u32,
    /// Failures in a row, while it is closed.
    pub consecutive_failures: u32,
    /// The calls in the window, if there is a rule about rates.
    pub window: Option<Counts>,
    /// Whether a probe is out whose lease has not ended.
    pub probing: bool,
    /// When a call is let through at the latest; `None` if one would be now, or if nobody
    /// knows because it is isolated.
    pub retry_in: Option<Duration>,
    /// How many calls were turned away since it was made, or would have been if it were
    /// not [`observe_only`](Self::observe_only).
    pub rejected: u64,
    /// Whether it only watches.
    pub observe_only: bool,
}

/// The calls in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All that say something about the server.
    pub calls: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// Those of them that were slow.
    pub slow: u64,
}

/// What a circuit is called.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) name: Arc<str>,
    pub(crate) key: Option<Arc<str>>,
}

// === impl State ===

impl State {
    /// The name used in logs and metrics, in `snake_case`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::Isolated => "isolated",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl OpenCause ===

impl OpenCause {
    /// The name used in logs and metrics, in `snake_case`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::FailureRate => "failure_rate",
            Self::SlowCallRate => "slow_call_rate",
            Self::ProbeFailed => "probe_failed",
            Self::Isolated => "isolated",
        }
    }
}

impl fmt::Display for OpenCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConsecutiveFailures => "too many failures in a row",
            Self::FailureRate => "too large a share of failures",
            Self::SlowCallRate => "too large a share of slow calls",
            Self::ProbeFailed => "its probe failed",
            Self::Isolated => "isolated by hand",
        })
    }
}

// === impl Label ===

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.name)?;
        match &self.key {
            Some(key) => write!(f, " for {key}"),
            None => Ok(()),
        }
    }
}
