//! What is told: one function per event, for logs and, with feature `metrics`, counters.

use tracing::{debug, info, warn};

use crate::{State, Transition, state::Label};

/// The state of a circuit changed.
pub(crate) fn turned(label: &Label, change: &Transition) {
    let (name, key) = (&label.name, label.key.as_deref());
    let (from, to) = (change.from.as_str(), change.to.as_str());
    let cause = change.cause.map(|cause| cause.as_str());
    let class = change.class.map(|class| class.as_str());
    let Transition {
        trips, open_for, ..
    } = change;
    match change.to {
        State::Open | State::Isolated => {
            warn!(circuit = %name, key, from, to, cause, class, trips, ?open_for, "circuit opened");
        }
        State::HalfOpen => {
            debug!(circuit = %name, key, from, to, cause, class, trips, "circuit half opened");
        }
        State::Closed => info!(circuit = %name, key, from, to, trips, "circuit closed"),
    }
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.circuit_breaker.transitions",
        "circuit" => std::sync::Arc::clone(name), "to" => to, "cause" => cause.unwrap_or("none")
    )
    .increment(1);
}

/// A call was turned away, or would have been if the circuit were not only watched.
pub(crate) fn rejected(label: &Label, state: State, observed: bool) {
    let (name, key) = (&label.name, label.key.as_deref());
    let state = state.as_str();
    debug!(circuit = %name, key, state, observed, "circuit is not closed");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.circuit_breaker.rejected",
        "circuit" => std::sync::Arc::clone(name),
        "observed" => if observed { "true" } else { "false" }
    )
    .increment(1);
}

/// A probe did not come back within its lease, and another takes its place.
pub(crate) fn probe_lost(label: &Label) {
    let (name, key) = (&label.name, label.key.as_deref());
    warn!(circuit = %name, key, "probe did not come back within its lease");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.circuit_breaker.probes_lost",
        "circuit" => std::sync::Arc::clone(name)
    )
    .increment(1);
}

/// A keyed breaker has no room for another circuit, since none of its own is closed.
pub(crate) fn overflowed(name: &std::sync::Arc<str>, max_keys: usize) {
    warn!(circuit = %name, max_keys, "no room for another circuit, new keys share one");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.circuit_breaker.overflows",
        "circuit" => std::sync::Arc::clone(name)
    )
    .increment(1);
}
