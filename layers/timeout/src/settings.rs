//! How long an attempt may take.

use std::time::Duration;

use crate::InvalidSettings;

/// How long one attempt may take, phase by phase.
///
/// Each limit must be above zero; [`Duration::MAX`] turns it off. What a call brings
/// along in its [`Limits`](steadfast_classify::Limits) replaces these, and is taken at
/// its word: a limit of zero leaves a call only what is ready at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// From the call to its first byte on the wire, the wait for readiness included.
    /// A wire that has to start a server first may raise it for that call
    /// ([`Flight::starting`](steadfast_classify::Flight::starting)).
    ///
    /// Default: 5 s. A connection that exists, or a server that is up, needs far less,
    /// and a call that was not sent can be sent elsewhere or later.
    pub connect: Duration,
    /// From the first byte sent, or the last progress, to the answer.
    ///
    /// Default: 60 s, what most MCP clients allow one request, so that a server that
    /// was written for them is not cut off.
    pub read: Duration,
    /// One whole attempt, whatever it reports.
    ///
    /// Default: none. The deadline of the call ends an attempt that reports progress
    /// for ever.
    pub attempt: Option<Duration>,
    /// Whether progress starts the read limit anew.
    ///
    /// Default: yes. A call that shows that it is alive is not a call that hangs, and
    /// cutting it off wastes the work and leaves its outcome unknown. Without it the read
    /// limit runs from the first byte sent, whatever happens: also while somebody on our
    /// side answers a question of the server's, and while it works on a task.
    pub reset_on_progress: bool,
}

// === impl Settings ===

impl Settings {
    /// The defaults: connect 5 s, read 60 s, extended by progress, no limit on the
    /// attempt.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(60),
            attempt: None,
            reset_on_progress: true,
        }
    }

    /// Limits the time from the call to its first byte on the wire.
    #[must_use]
    pub const fn with_connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Limits the time from the first byte sent, or the last progress, to the answer.
    #[must_use]
    pub const fn with_read(mut self, limit: Duration) -> Self {
        self.read = limit;
        self
    }

    /// Limits one whole attempt.
    #[must_use]
    pub const fn with_attempt(mut self, limit: Duration) -> Self {
        self.attempt = Some(limit);
        self
    }

    /// Says whether progress starts the read limit anew.
    #[must_use]
    pub const fn with_reset_on_progress(mut self, reset: bool) -> Self {
        self.reset_on_progress = reset;
        self
    }

    /// These settings, if they can be kept.
    pub(crate) fn checked(self) -> Result<Self, InvalidSettings> {
        for (field, limit) in [
            ("connect", Some(self.connect)),
            ("read", Some(self.read)),
            ("attempt", self.attempt),
        ] {
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(InvalidSettings::Zero { field });
            }
        }
        for (field, limit) in [("connect", self.connect), ("read", self.read)] {
            // A limit that is off is not meant to run out.
            if limit == Duration::MAX {
                continue;
            }
            if let Some(attempt) = self.attempt.filter(|attempt| *attempt < limit) {
                return Err(InvalidSettings::NeverReached {
                    field,
                    limit,
                    attempt,
                });
            }
        }
        Ok(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
