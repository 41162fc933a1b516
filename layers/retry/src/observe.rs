//! What is told about retries.

use std::time::Duration;

use tracing::{debug, field::display, warn};

use crate::verdict::{Attempted, Reason};

/// Another attempt will follow this one.
pub(crate) fn retrying(seen: &Attempted<'_>, wait: Duration) {
    let (attempt, class) = (seen.attempt, seen.class().as_str());
    let origin = seen.failure.map(|failure| display(failure.origin()));
    debug!(attempt, class, origin, ?wait, "retrying");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.retry.retries", "class" => class).increment(1);
}

/// An attempt after the first one succeeded.
pub(crate) fn recovered(attempt: u32) {
    debug!(attempt, "recovered");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.retry.recovered").increment(1);
}

/// The call could be repeated, but will not be.
pub(crate) fn gave_up(seen: &Attempted<'_>, stop: Reason) {
    let (attempt, class) = (seen.attempt, seen.class().as_str());
    let origin = seen.failure.map(|failure| display(failure.origin()));
    let reason = stop.as_str();
    match stop {
        Reason::Exhausted | Reason::Budget => {
            warn!(attempt, class, origin, reason, "gave up");
        }
        // Told by whoever opened the circuit, or known to whoever set the bound.
        Reason::CircuitOpen | Reason::MaxWait | Reason::Deadline => {
            debug!(attempt, class, origin, reason, "gave up");
        }
    }
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.retry.gave_up", "reason" => reason).increment(1);
}
