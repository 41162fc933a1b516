//! No fallback.

use std::future::{Ready, ready};

use steadfast_classify::Failure;
use steadfast_fallback::{Recover, Sourced, Ticket};

/// The fallback that gives nothing: a failure stays one, and an answer is live.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFallback;

// === impl NoFallback ===

impl<R, T> Recover<R, T> for NoFallback {
    type Ticket = Self;

    fn begin(&mut self, _: &R) -> Self {
        *self
    }
}

impl<T> Ticket<T> for NoFallback {
    type Recovery = Ready<Option<Sourced<T>>>;

    fn finish(self, _: &mut T) {}

    fn recover(self, _: &Failure) -> Option<Self::Recovery> {
        let _: fn(Option<Sourced<T>>) -> _ = ready;
        None
    }
}
