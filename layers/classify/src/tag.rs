//! Where an answer came from, and why it is not a live one.

use std::{fmt, time::Duration};

use crate::{Class, Failure, Phase};

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The server, just now.
    Live,
    /// An earlier answer of the server.
    Cache {
        /// How old it is.
        age: Duration,
    },
    /// Neither: a default, or the statement that nothing better is to be had.
    Degraded,
}

/// Why an answer is not a live one: what happened to the call, small enough to travel
/// with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// What happened to the last attempt.
    pub class: Class,
    /// The part of the call it happened in.
    pub phase: Option<Phase>,
    /// Whether trying again is pointless until something is changed.
    pub permanent: bool,
    /// How long the server, or our own side, asks to wait.
    pub retry_after: Option<Duration>,
    /// How many attempts were made.
    pub attempts: u32,
    /// Whether the logical call may have run.
    pub may_have_run: bool,
    /// The failure in one line, without advice: that is in the other fields.
    pub message: String,
}

/// A response that can carry where it came from, and can say that nothing better is to
/// be had.
pub trait Tag: Sized {
    /// Writes the source, and the cause where the answer is not a live one, into the
    /// response, for whoever only sees that.
    fn tag(&mut self, source: &Source, cause: Option<&Cause>);

    /// A response that says that the call failed and nothing can be given instead;
    /// `None` where the type has no way to say so.
    fn unavailable(cause: &Cause) -> Option<Self>;

    /// Whether this response reports an error of the operation itself. Such a response
    /// is passed on but never kept as a good answer. Default: `false`.
    fn is_error(&self) -> bool {
        false
    }
}

// === impl Source ===

impl Source {
    /// The name used in logs, metrics and results: `live`, `cache` or `degraded`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Cache { .. } => "cache",
            Self::Degraded => "degraded",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Cause ===

impl From<&Failure> for Cause {
    fn from(failure: &Failure) -> Self {
        Self {
            class: failure.class(),
            phase: failure.phase(),
            permanent: failure.is_permanent(),
            retry_after: failure.retry_floor(),
            attempts: failure.attempts(),
            may_have_run: failure.may_have_run(),
            message: format!("{failure:#}"),
        }
    }
}
