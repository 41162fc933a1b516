//! What can be wrong with a configuration.

use std::time::Duration;

/// Why a [`Backoff`](crate::Backoff) could not be built.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBackoff {
    /// The first wait is nothing, and so would be all others.
    #[error("base must be above zero")]
    Base,
    /// The longest wait is shorter than the first, or longer than a day.
    #[error("cap must be at least base ({base:?}) and at most 24h, not {cap:?}")]
    Cap {
        /// The first wait.
        base: Duration,
        /// The longest wait that was asked for.
        cap: Duration,
    },
    /// Waits would shrink, or are no number.
    #[error("factor must be a finite number of at least 1, not {0}")]
    Factor(f64),
    /// The additive part is no part of the wait.
    #[error("jitter must be from 0 to 1, not {0}")]
    Jitter(f64),
}

/// Why a [`RetryLayer`](crate::RetryLayer) could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSettings {
    /// The backoff would reach waits that are never waited, so that retries end early for
    /// a reason nobody sees in the settings.
    #[error("max_wait must be at least the cap of the backoff ({cap:?}), not {max_wait:?}")]
    MaxWait {
        /// The longest wait of the backoff.
        cap: Duration,
        /// The bound that was asked for.
        max_wait: Duration,
    },
}
