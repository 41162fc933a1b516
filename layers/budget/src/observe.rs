//! What is told of admissions: events at transitions, and counters.
//!
//! The names of limits are told, never a request; a key only where its limit shows it.

use std::time::Duration;

use tracing::{debug, warn};

use crate::{Limit, OverBudget};

/// A call was rejected. The first of a run is a warning.
pub(crate) fn rejected(over: &OverBudget, begins: bool) {
    #[cfg(feature = "metrics")]
    count("steadfast.budget.rejected", over.limit());
    let (limit, key, retry_in) = (over.limit(), over.key(), over.retry_in());
    let overflow = over.is_overflow();
    if begins {
        warn!(limit, key, ?retry_in, overflow, "limit exhausted");
    } else {
        debug!(limit, key, ?retry_in, overflow, "call rejected");
    }
}

/// A call was admitted although it is over a limit that only warns.
pub(crate) fn warned(over: &OverBudget, begins: bool) {
    #[cfg(feature = "metrics")]
    count("steadfast.budget.warned", over.limit());
    let (limit, key, retry_in) = (over.limit(), over.key(), over.retry_in());
    let overflow = over.is_overflow();
    if begins {
        warn!(limit, key, ?retry_in, overflow, "limit would be exhausted");
    } else {
        debug!(limit, key, ?retry_in, overflow, "call would be rejected");
    }
}

/// A call has to wait for its turn.
pub(crate) fn waiting(limit: &Limit, wait: Duration) {
    #[cfg(feature = "metrics")]
    count("steadfast.budget.waited", limit.name());
    debug!(limit = limit.name(), ?wait, "waiting for its turn");
}

/// A new key got no bucket of its own.
pub(crate) fn overflowed(limit: &Limit, max_keys: usize, begins: bool) {
    #[cfg(feature = "metrics")]
    count("steadfast.budget.overflowed", limit.name());
    let limit = limit.name();
    if begins {
        warn!(
            limit,
            max_keys, "too many keys, further ones share a bucket"
        );
    } else {
        debug!(limit, max_keys, "key shares a bucket");
    }
}

/// A retry was refused.
pub(crate) fn retry_refused(begins: bool) {
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.budget.retry_refused").increment(1);
    if begins {
        warn!("retry budget exhausted");
    } else {
        debug!("retry refused");
    }
}

#[cfg(feature = "metrics")]
fn count(name: &'static str, limit: &str) {
    metrics::counter!(name, "limit" => limit.to_owned()).increment(1);
}
