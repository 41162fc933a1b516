//! The settings of one limit.

use std::sync::Arc;

use crate::Quota;

/// The settings of one limit: its name, its quota, and what happens above it.
///
/// The name is what rejections, events and counters call it, so it should say whose
/// limit it is: `"session"`, `"search server"`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    name: Arc<str>,
    quota: Quota,
    mode: Mode,
}

/// What happens to a call that is over a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// It waits if it may, and else is rejected. The default: a limit that is set is
    /// meant.
    #[default]
    Enforce,
    /// It is admitted all the same, and counted and told, to see what a limit would do
    /// before it does it.
    Warn,
}

// === impl Limit ===

impl Limit {
    /// A limit of this name that enforces `quota`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, quota: Quota) -> Self {
        Self {
            name: name.into(),
            quota,
            mode: Mode::default(),
        }
    }

    /// Sets what happens to a call that is over the limit.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many calls it lets through.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// What happens to a call that is over it.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

// === impl Mode ===

impl Mode {
    /// The name used in settings and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Warn => "warn",
        }
    }
}
