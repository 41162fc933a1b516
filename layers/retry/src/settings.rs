//! How often and how long to try.

use std::time::Duration;

use crate::Backoff;

/// How often and how long to try.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_retry::{Backoff, Jitter, RetryLayer, Settings};
/// let quick = Backoff::new(Duration::from_millis(50), Duration::from_secs(1), Jitter::Full)?;
/// let layer = RetryLayer::new(Settings::new().with_max_retries(2).with_backoff(quick))?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// How often a call may be repeated; the first attempt is not counted. A call's own
    /// [`Limits::max_retries`](steadfast_classify::Limits) replaces it.
    ///
    /// Default: 3. With the default backoff that rides out 3.5 s to 4.2 s, enough for a
    /// process to be started again; an outage that lasts longer is a breaker's.
    pub max_retries: u32,
    /// How long to wait before each retry.
    pub backoff: Backoff,
    /// The longest wait. Where the server asks for more, the call fails now, with what the
    /// server said, instead of holding its caller.
    ///
    /// Default: 10 s, a little above the backoff's cap.
    pub max_wait: Duration,
}

// === impl Settings ===

impl Settings {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_retries: 3,
            backoff: Backoff::default(),
            max_wait: Duration::from_secs(10),
        }
    }

    /// Sets how often a call may be repeated.
    #[must_use]
    pub const fn with_max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Sets how long to wait before each retry.
    #[must_use]
    pub const fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the longest wait. It must be at least the cap of the backoff.
    #[must_use]
    pub const fn with_max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
