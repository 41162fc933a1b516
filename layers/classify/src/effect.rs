//! What repeating a call would do.

use std::fmt;

/// What a call does to the world, and so whether repeating it is harmless.
///
/// The default is [`NonIdempotent`](Self::NonIdempotent): a request that says nothing
/// about itself is treated as one that must not run twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Changes nothing; may be repeated, and its answer may be kept.
    ReadOnly,
    /// Running it twice has the effect of running it once; may be repeated.
    Idempotent,
    /// Running it twice does it twice. Never repeated once it may have run.
    #[default]
    NonIdempotent,
}

// === impl Effect ===

impl Effect {
    /// Whether running the call a second time is harmless.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Idempotent)
    }

    /// The name used in logs and results, in `snake_case`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::NonIdempotent => "non_idempotent",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
