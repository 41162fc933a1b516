//! What a rejected call is told, and what a wrong setting is told.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use steadfast_classify::{Class, Failure};

/// Why a call was rejected: which limit it is over, and when it may come again.
///
/// It is the source of the [`Failure`] that the call gets, where
/// [`Failure::find_source`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    limit: Arc<str>,
    key: Option<Arc<str>>,
    retry_in: Duration,
    overflow: bool,
}

/// Why the settings of a limit are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLimit {
    /// The burst would take too long to refill at this rate.
    #[error("burst must refill within 100 years, which at this rate is at most {max}")]
    Burst {
        /// The largest burst at this rate.
        max: u32,
    },
    /// A count is no positive whole number in plain digits.
    #[error("{field} must be a whole number from 1 to 4294967295 in plain digits")]
    Number {
        /// The count that is wrong.
        field: &'static str,
    },
    /// A unit of time that is not known.
    #[error("unit must be `s`, `min` or `h`")]
    Unit,
    /// A quota that is not written as one.
    #[error("quota must be `<count>/<unit>`, with ` burst <count>` after it if that differs")]
    Quota,
    /// A mode that is not known.
    #[error("mode must be `enforce` or `warn`")]
    Mode,
}

/// Why the settings of a retry budget are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRetryBudget {
    /// Too many retries per first attempt.
    #[error("percent must be at most 1000, which is ten retries per first attempt")]
    Percent,
    /// More than can be counted.
    #[error("ceiling must be at most 100000 retries")]
    Ceiling,
    /// More in reserve than may be saved.
    #[error("reserve must be at most the ceiling")]
    Reserve,
    /// A reserve that refills in no time is no limit, and one that takes more than a
    /// year does not refill.
    #[error("refill must be from 1 ms to 365 days; none switches it off")]
    Refill,
}

// === impl OverBudget ===

impl OverBudget {
    /// Over the limit of this name, which lets the call through in `retry_in`.
    #[must_use]
    pub fn new(limit: impl Into<Arc<str>>, retry_in: Duration) -> Self {
        Self {
            limit: limit.into(),
            key: None,
            retry_in,
            overflow: false,
        }
    }

    /// Says whose limit it is. It ends up in logs: no secrets.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn with_overflow(mut self, overflow: bool) -> Self {
        self.overflow = overflow;
        self
    }

    /// The name of the limit.
    #[must_use]
    pub fn limit(&self) -> &str {
        &self.limit
    }

    /// Whose limit it is, if it is keyed and its keys may be shown.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// When a call like this will be let through, those that wait before it included.
    #[must_use]
    pub const fn retry_in(&self) -> Duration {
        self.retry_in
    }

    /// Whether the key had no bucket of its own, since the limit was full of keys, and
    /// shared one with every other such key.
    #[must_use]
    pub const fn is_overflow(&self) -> bool {
        self.overflow
    }

    /// The failure of a call that was never sent, after it waited for `waited`.
    pub(crate) fn into_failure(self, waited: Option<Duration>) -> Failure {
        let mut failure = Failure::new(Class::Rejected)
            .with_layer("budget")
            .with_retry_in(self.retry_in);
        if let Some(waited) = waited {
            failure = failure.with_elapsed(waited);
        }
        failure.set_attempts(0);
        failure.with_source(self)
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "over the limit \"{}\"", self.limit)?;
        if let Some(key) = &self.key {
            write!(f, " of \"{key}\"")?;
        }
        if self.overflow {
            f.write_str(", shared since there are too many keys")?;
        }
        Ok(())
    }
}

impl Error for OverBudget {}
