//! What can be wrong with a stack.

use std::time::Duration;

/// Settings that make no sense, by themselves or together. One line that names the
/// setting and what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidStack {
    /// A limit of one attempt that the whole call never reaches.
    #[error(
        "`{field}` ({limit:?}) must not be above the total time of a call ({total:?}); \
         lower it or raise `total`"
    )]
    NeverReached {
        /// The limit.
        field: &'static str,
        /// What it was set to.
        limit: Duration,
        /// The time of the whole call.
        total: Duration,
    },
    /// A lease that lets a second probe through while the first still runs.
    #[error(
        "the breaker's `probe_lease` ({lease:?}) must be at least `connect` and `read` together \
         ({attempt:?}); raise it with `circuit_breaker::Settings::with_probe_lease`, or lower `read`"
    )]
    ShortLease {
        /// The lease.
        lease: Duration,
        /// How long an attempt without progress may take.
        attempt: Duration,
    },
    /// A time limit.
    #[error(transparent)]
    Timeout(#[from] steadfast_timeout::InvalidSettings),
    /// A setting of the retries.
    #[error(transparent)]
    Retry(#[from] steadfast_retry::InvalidSettings),
    /// The retry budget.
    #[error(transparent)]
    RetryBudget(#[from] steadfast_budget::InvalidRetryBudget),
    /// A setting of the circuit breaker.
    #[error(transparent)]
    Breaker(#[from] steadfast_circuit_breaker::InvalidSettings),
}
