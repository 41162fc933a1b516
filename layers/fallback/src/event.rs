//! What is told of answers, one helper per event.
//!
//! Never an argument, a caller or a value: only where it came from and why.

use std::time::Duration;

use steadfast_classify::{Failure, Source};
use tracing::{Span, debug, field::display, info, level_filters::LevelFilter, warn};

/// The server answered.
pub(crate) fn live() {
    let source = Source::Live.as_str();
    // To look for the span takes longer than all else here, and there is none where nobody
    // listens.
    if LevelFilter::current() != LevelFilter::OFF {
        // The span first, so that the event is seen with it.
        Span::current().record("steadfast.source", source);
    }
    debug!(source, "answered");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.fallback.answers", "source" => "live").increment(1);
}

/// Something else was given in place of a failure.
pub(crate) fn recovered(source: &Source, failure: &Failure) {
    let class = failure.class().as_str();
    let origin = display(failure.origin());
    note(source.as_str(), class);
    match source {
        Source::Cache { age } => {
            info!(source = "cache", ?age, class, %origin, "answered from the cache");
        }
        source => warn!(%source, class, %origin, %failure, "degraded answer"),
    }
}

/// Nothing could be given in place of a failure.
pub(crate) fn passed_on(failure: &Failure) {
    let class = failure.class().as_str();
    note("none", class);
    debug!(source = "none", class, origin = %failure.origin(), "failure passed on");
}

/// The store did not answer in time, and the chain goes on without it.
pub(crate) fn store_timed_out(failure: &Failure) {
    warn!(origin = %failure.origin(), "the store of good answers is too slow");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.fallback.store_timeouts").increment(1);
}

/// There was a good answer once, too long ago.
pub(crate) fn too_old(failure: &Failure, age: Duration) {
    debug!(?age, origin = %failure.origin(), "the last good answer is too old");
}

/// An answer is larger than the whole store.
pub(crate) fn too_large(server: &str, operation: &str, bytes: usize) {
    debug!(
        server,
        operation, bytes, "an answer is too large to be kept"
    );
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.fallback.unkept").increment(1);
}

fn note(source: &'static str, class: &'static str) {
    Span::current().record("steadfast.source", source);
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.fallback.answers", "source" => source, "class" => class)
        .increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = class;
}
