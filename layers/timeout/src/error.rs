//! Limits that ran out, and limits that cannot be kept.

use std::{fmt, time::Duration};

use steadfast_classify::Phase;

/// A time limit that ran out. It is the source of the
/// [`Failure`](steadfast_classify::Failure) that the layers of this crate make:
///
/// ```
/// # use steadfast_classify::Failure;
/// use steadfast_timeout::Elapsed;
///
/// fn limit_of(failure: &Failure) -> Option<std::time::Duration> {
///     failure.find_source::<Elapsed>().map(Elapsed::limit)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    phase: Phase,
    limit: Duration,
}

/// Settings that cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSettings {
    /// A limit of zero, which no call could meet.
    #[error("`{field}` is zero; allowed is any duration above zero")]
    Zero {
        /// The name of the setting.
        field: &'static str,
    },
    /// A limit above the one on the whole attempt, so that it could never run out.
    #[error(
        "`{field}` is {limit:?}, above `attempt` ({attempt:?}), and could never run out; \
         allowed is at most `attempt`"
    )]
    NeverReached {
        /// The name of the setting.
        field: &'static str,
        /// What it was set to.
        limit: Duration,
        /// What the attempt is limited to.
        attempt: Duration,
    },
}

// === impl Elapsed ===

impl Elapsed {
    pub(crate) const fn new(phase: Phase, limit: Duration) -> Self {
        Self { phase, limit }
    }

    /// Whose limit it was.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// How long it was. For [`Phase::Total`] in an attempt, what was left of it when
    /// the attempt began.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            Phase::Total => f.write_str("the deadline of the call passed"),
            phase => write!(f, "its {phase} limit of {:?} passed", self.limit),
        }
    }
}

impl std::error::Error for Elapsed {}
