//! Limits that a call brings along.

use std::time::Duration;

/// Limits of one call. Each one that is set replaces the default of the layer that
/// keeps it; one that is `None` leaves that default alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// From the call to its first byte on the wire.
    pub connect: Option<Duration>,
    /// From the first byte sent, or the last progress, to the answer.
    pub read: Option<Duration>,
    /// One whole attempt.
    pub attempt: Option<Duration>,
    /// The whole logical call, all attempts and waits.
    pub total: Option<Duration>,
    /// How often the call may be repeated; the first attempt is not counted.
    pub max_retries: Option<u32>,
}

// === impl Limits ===

impl Limits {
    /// No limit of its own: every layer keeps its default.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            connect: None,
            read: None,
            attempt: None,
            total: None,
            max_retries: None,
        }
    }

    /// Sets the time from the call to its first byte on the wire.
    #[must_use]
    pub const fn with_connect(mut self, limit: Duration) -> Self {
        self.connect = Some(limit);
        self
    }

    /// Sets the time from the first byte sent, or the last progress, to the answer.
    #[must_use]
    pub const fn with_read(mut self, limit: Duration) -> Self {
        self.read = Some(limit);
        self
    }

    /// Sets the time of one whole attempt.
    #[must_use]
    pub const fn with_attempt(mut self, limit: Duration) -> Self {
        self.attempt = Some(limit);
        self
    }

    /// Sets the time of the whole logical call.
    #[must_use]
    pub const fn with_total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }

    /// Sets how often the call may be repeated.
    #[must_use]
    pub const fn with_max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// These limits, with `other`'s wherever these say nothing.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            connect: self.connect.or(other.connect),
            read: self.read.or(other.read),
            attempt: self.attempt.or(other.attempt),
            total: self.total.or(other.total),
            max_retries: self.max_retries.or(other.max_retries),
        }
    }
}
