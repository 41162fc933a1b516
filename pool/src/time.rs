//! Times that cannot overflow.

use std::time::Duration;

use tokio::time::Instant;

/// Longer than any wait.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);

/// `wait`, or so long that it is never over.
pub(crate) fn bounded(wait: Duration) -> Duration {
    wait.min(FAR)
}

/// `wait` after `now`, or so far off that it is never reached.
pub(crate) fn after(now: Instant, wait: Duration) -> Instant {
    now + bounded(wait)
}
