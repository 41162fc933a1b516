//! What the chain may do.

use std::time::Duration;

use crate::InvalidSettings;

/// What a [`Chain`](crate::Chain) may do, checked when the chain is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    pub(crate) max_stale: Duration,
    pub(crate) lookup_limit: Duration,
    pub(crate) explicit: bool,
    pub(crate) enabled: bool,
}

// === impl Settings ===

impl Settings {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            max_stale: Duration::from_secs(600),
            lookup_limit: Duration::from_secs(1),
            explicit: false,
            enabled: true,
        }
    }

    /// How old an answer may be that is given in place of a failure; one of exactly this
    /// age still is. Default: 10 min, longer than most restarts and deployments, and
    /// shorter than what a model would still take for the present.
    #[must_use]
    pub const fn with_max_stale(mut self, age: Duration) -> Self {
        self.max_stale = age;
        self
    }

    /// How long a store may take before the chain goes on without it; a deadline in the
    /// call's context ends it earlier. Default: 1 s, ample for a store across a network,
    /// and little next to the call that failed. [`Memory`](crate::Memory) never waits.
    #[must_use]
    pub const fn with_lookup_limit(mut self, limit: Duration) -> Self {
        self.lookup_limit = limit;
        self
    }

    /// Whether the chain ends in the failure itself, rather than in a response that says
    /// "unavailable". Default: no, since a model goes on better with a sentence than
    /// with a broken turn.
    #[must_use]
    pub const fn with_explicit(mut self, explicit: bool) -> Self {
        self.explicit = explicit;
        self
    }

    /// Whether anything is kept, and given in place of a failure, at all. Default: yes.
    /// Answers are tagged either way.
    #[must_use]
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    pub(crate) const fn check(self) -> Result<Self, InvalidSettings> {
        if self.max_stale.is_zero() {
            return Err(InvalidSettings::MaxStale(self.max_stale));
        }
        if self.lookup_limit.is_zero() {
            return Err(InvalidSettings::LookupLimit(self.lookup_limit));
        }
        Ok(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
