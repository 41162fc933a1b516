//! What operators see.

use steadfast_classify::Failure;
use tracing::debug;

use crate::Elapsed;

/// An attempt ran out of time. Not louder than `debug`: the caller gets the failure.
pub(crate) fn attempt_over(failure: &Failure, elapsed: Elapsed) {
    event(failure, elapsed, "attempt ran out of time");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.timeout.elapsed",
        "phase" => elapsed.phase().as_str(),
        "class" => failure.class().as_str(),
    )
    .increment(1);
}

/// A call passed its deadline.
pub(crate) fn deadline_passed(failure: &Failure, elapsed: Elapsed) {
    event(failure, elapsed, "call passed its deadline");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.deadline.elapsed",
        "class" => failure.class().as_str(),
    )
    .increment(1);
}

fn event(failure: &Failure, elapsed: Elapsed, message: &'static str) {
    let origin = failure.origin();
    debug!(
        class = failure.class().as_str(),
        phase = elapsed.phase().as_str(),
        limit = ?elapsed.limit(),
        elapsed = ?failure.elapsed().unwrap_or_default(),
        server = origin.server.as_deref(),
        operation = origin.operation.as_deref(),
        "{message}",
    );
}
