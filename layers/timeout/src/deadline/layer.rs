//! The layer that gives a call its deadline.

use std::time::Duration;

use tower_layer::Layer;

use crate::{Deadline, InvalidSettings};

/// Ends each logical call in time: all its attempts and the waits between them.
///
/// It belongs outside of every layer that repeats a call or makes it wait. The deadline
/// is written into the call's [`CallContext`](steadfast_classify::CallContext), where
/// the layers inside see it; one that is there already is a ceiling and stays. What the
/// call brings along as [`Limits::total`](steadfast_classify::Limits::total) replaces
/// the time of the layer.
///
/// The default is 300 s: room for four attempts of a minute each and the pauses between
/// them, and still a time after which somebody who waits wants to be told.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineLayer {
    total: Duration,
    stamp_only: bool,
}

// === impl DeadlineLayer ===

impl DeadlineLayer {
    /// A layer that gives each call this much time in all; [`Duration::MAX`] gives it
    /// no deadline.
    ///
    /// # Errors
    ///
    /// A time of zero.
    pub const fn new(total: Duration) -> Result<Self, InvalidSettings> {
        if total.is_zero() {
            return Err(InvalidSettings::Zero { field: "total" });
        }
        Ok(Self {
            total,
            stamp_only: false,
        })
    }

    /// Leaves it to the layers inside to end the call in time.
    ///
    /// Without this the layer keeps a timer of its own and makes a clone of the inner
    /// service ready inside its future, so that waiting for it counts too. With it the
    /// layer only writes the deadline into the call and adds no timer, and it delegates
    /// readiness. That is enough where a [`TimeoutLayer`](crate::TimeoutLayer) ends each
    /// attempt at the deadline and no layer between them waits past it. A call without
    /// a context has no place for the deadline and is timed by this layer all the same.
    #[must_use]
    pub const fn stamp_only(mut self) -> Self {
        self.stamp_only = true;
        self
    }

    /// How much time a call has that says nothing itself.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }
}

impl Default for DeadlineLayer {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(300),
            stamp_only: false,
        }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline::new(inner, self.total, self.stamp_only)
    }
}
