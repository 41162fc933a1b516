//! governor's clock over tokio's time, so that a paused clock is obeyed.

use std::{ops::Add, time::Duration};

use governor::{
    clock::{Clock, Reference},
    nanos::Nanos,
};
use tokio::time::Instant;

/// Where a sum of time would overflow: longer than anyone waits, and what tokio's own
/// timer takes for "never".
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Reads tokio's clock for governor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokioClock;

/// A reading of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) Instant);

/// `wait` after `at`, or very much later where that cannot be told.
pub(crate) fn later(at: Instant, wait: Duration) -> Instant {
    at.checked_add(wait).unwrap_or_else(|| at + FAR)
}

// === impl TokioClock ===

impl Clock for TokioClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(Instant::now())
    }
}

// === impl Moment ===

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, wait: Nanos) -> Self {
        Self(later(self.0, wait.into()))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_duration_since(earlier.0).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Self {
        Self(self.0.checked_sub(duration.into()).unwrap_or(self.0))
    }
}
