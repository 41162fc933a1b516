//! The admission policy.

use std::task::Waker;

use tokio::time::Instant;

use crate::OverBudget;

/// Decides whether a call may go, now or later.
///
/// [`Global`](crate::Global), [`Keyed`](crate::Keyed) and their chains are policies;
/// another one, such as a budget that several machines share, may be put in their place.
/// An `Option` of a policy is one too, and `None` admits everything.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_budget::{Admit, OverBudget, Patience, Verdict};
/// /// Lets nobody in while the house is closed.
/// #[derive(Clone)]
/// struct House { open: bool }
///
/// impl<R> Admit<R> for House {
///     type Ticket = ();
///
///     fn admit(&self, _: &R, (): &mut (), _: Patience<'_>) -> Verdict {
///         match self.open {
///             true => Verdict::Admitted,
///             false => Verdict::Over(OverBudget::new("house", Duration::from_secs(60))),
///         }
///     }
/// }
/// ```
pub trait Admit<R> {
    /// What one call keeps from one decision to the next: what it has paid already, and
    /// its place in a line. Dropped when the call is admitted, rejected or dropped.
    type Ticket: Default;

    /// Decides on `request`, with the ticket it got from the decisions before; a fresh
    /// one at first.
    ///
    /// It must not answer [`Verdict::Wait`] with a time that `patience` does not
    /// [allow](Patience::allows).
    fn admit(&self, request: &R, ticket: &mut Self::Ticket, patience: Patience<'_>) -> Verdict;
}

/// What an [`Admit`] says of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It may go.
    Admitted,
    /// It is to ask again at this time, or when its waker is woken.
    Wait(Instant),
    /// It may not go.
    Over(OverBudget),
}

/// Until when a call may wait, and how it is woken.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    until: Option<Instant>,
    waker: Option<&'a Waker>,
}

// === impl Patience ===

impl<'a> Patience<'a> {
    /// For a call that may wait until then, `None` for one that may not wait.
    #[must_use]
    pub const fn new(until: Option<Instant>) -> Self {
        Self { until, waker: None }
    }

    /// The same, with what wakes the call.
    #[must_use]
    pub const fn with_waker(mut self, waker: &'a Waker) -> Self {
        self.waker = Some(waker);
        self
    }

    /// Whether the call may wait until `at`.
    #[must_use]
    pub fn allows(&self, at: Instant) -> bool {
        self.until.is_some_and(|until| at <= until)
    }

    /// What wakes the call before its time. There is none when it is asked for the first
    /// time; it asks again, with one, before it waits.
    #[must_use]
    pub const fn waker(&self) -> Option<&'a Waker> {
        self.waker
    }
}

// === impl Admit ===

impl<A, R> Admit<R> for Option<A>
where
    A: Admit<R>,
{
    type Ticket = A::Ticket;

    fn admit(&self, request: &R, ticket: &mut Self::Ticket, patience: Patience<'_>) -> Verdict {
        match self {
            Some(policy) => policy.admit(request, ticket, patience),
            None => Verdict::Admitted,
        }
    }
}
