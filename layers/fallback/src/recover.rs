//! What to answer instead: the policy.

use std::{
    fmt,
    future::{Future, Ready, ready},
};

use steadfast_classify::Failure;

use crate::{Sourced, covers};

/// Decides what is answered in place of a failed call: a [`Chain`](crate::Chain), a
/// closure, or your own.
///
/// A closure `Fn(&Failure) -> Option<T>` is asked for each failure that
/// [`covers`] allows; what it gives counts as degraded, and the value itself is not
/// tagged.
pub trait Recover<R, T> {
    /// Accompanies one call.
    type Ticket: Ticket<T>;

    /// Notes what has to be known of a request before it is gone.
    fn begin(&mut self, request: &R) -> Self::Ticket;
}

/// Accompanies one call from its begin to its end.
///
/// Exactly one of three things happens to it: [`finish`](Self::finish),
/// [`recover`](Self::recover), or it is dropped, because the caller gave up or the inner
/// service panicked; the call may then have run.
pub trait Ticket<T> {
    /// A recovery under way: the other answer, or `None` if there is none and the
    /// failure is to be returned as it is.
    type Recovery: Future<Output = Option<Sourced<T>>>;

    /// The call succeeded. The answer may be tagged here.
    fn finish(self, value: &mut T);

    /// The call failed. `None`: the failure is returned as it is. Ask
    /// [`covers`] first, unless you have a better rule.
    fn recover(self, failure: &Failure) -> Option<Self::Recovery>;
}

/// The ticket of a closure.
#[derive(Clone, Copy)]
pub struct Answer<F>(F);

// === impl Answer ===

impl<F, R, T> Recover<R, T> for F
where
    F: Fn(&Failure) -> Option<T> + Clone,
{
    type Ticket = Answer<F>;

    fn begin(&mut self, _request: &R) -> Answer<F> {
        Answer(self.clone())
    }
}

impl<F, T> Ticket<T> for Answer<F>
where
    F: Fn(&Failure) -> Option<T>,
{
    type Recovery = Ready<Option<Sourced<T>>>;

    fn finish(self, _value: &mut T) {}

    fn recover(self, failure: &Failure) -> Option<Self::Recovery> {
        covers(failure)
            .then(|| ready((self.0)(failure).map(|value| Sourced::degraded(value, failure))))
    }
}

impl<F> fmt::Debug for Answer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
