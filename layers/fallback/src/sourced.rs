//! An answer that says where it came from.

use std::time::Duration;

use steadfast_classify::{Cause, Failure, Source};

/// An answer, where it came from, and why it is not a live one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sourced<T> {
    /// The answer.
    pub value: T,
    /// Where it came from.
    pub source: Source,
    /// What happened to the call; `None` for a live answer.
    pub cause: Option<Cause>,
}

// === impl Sourced ===

impl<T> Sourced<T> {
    /// An answer of the server, just now.
    #[must_use]
    pub const fn live(value: T) -> Self {
        Self {
            value,
            source: Source::Live,
            cause: None,
        }
    }

    /// An earlier answer, given because of `failure`.
    #[must_use]
    pub fn cached(value: T, age: Duration, failure: &Failure) -> Self {
        Self {
            value,
            source: Source::Cache { age },
            cause: Some(Cause::from(failure)),
        }
    }

    /// A value that is no answer of the server, given because of `failure`.
    #[must_use]
    pub fn degraded(value: T, failure: &Failure) -> Self {
        Self {
            value,
            source: Source::Degraded,
            cause: Some(Cause::from(failure)),
        }
    }

    /// Whether the server gave this answer to this very call.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.source == Source::Live
    }

    /// The answer alone.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }

    /// The same source and cause, with another value.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced {
            value: change(self.value),
            source: self.source,
            cause: self.cause,
        }
    }
}
