//! Looking for another answer.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use steadfast_classify::{Failure, Source};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{Kept, Mark, Settings, Sourced, Store, event};

/// The recovery of a [`Chain`](crate::Chain) under way.
///
/// # Cancel safety
///
/// Dropping it drops the lookup in the store; nothing else is held.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct Recovering<St: Store, M> {
    #[pin]
    lookup: Option<St::Lookup>,
    #[pin]
    limit: Limit,
    last: Last<St::Value, M>,
}

/// How long the store is waited for; without a timer until it has to be waited for.
#[pin_project]
pub(crate) struct Limit {
    until: Option<Instant>,
    #[pin]
    sleep: Option<Sleep>,
}

/// What the chain has besides the store, and what it needs to make an answer of it.
pub(crate) struct Last<T, M> {
    mark: M,
    default: Option<Arc<T>>,
    settings: Settings,
    failure: Failure,
}

// === impl Recovering ===

impl<St: Store, M> Recovering<St, M> {
    pub(crate) const fn new(
        lookup: Option<St::Lookup>,
        limit: Limit,
        last: Last<St::Value, M>,
    ) -> Self {
        Self {
            lookup,
            limit,
            last,
        }
    }
}

impl<St, M> Future for Recovering<St, M>
where
    St: Store,
    St::Value: Clone,
    M: Mark<St::Value>,
{
    type Output = Option<Sourced<St::Value>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let kept = match this.lookup.as_pin_mut() {
            None => None,
            Some(lookup) => match lookup.poll(cx) {
                // An answer that is there at the deadline wins: the store is asked first.
                Poll::Ready(kept) => kept,
                Poll::Pending => {
                    ready!(this.limit.poll(cx));
                    event::store_timed_out(&this.last.failure);
                    None
                }
            },
        };
        Poll::Ready(this.last.answer(kept))
    }
}

impl<St: Store, M> fmt::Debug for Recovering<St, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovering")
            .field("looking", &self.lookup.is_some())
            .field("until", &self.limit.until)
            .field("failure", &self.last.failure)
            .finish_non_exhaustive()
    }
}

// === impl Limit ===

impl Limit {
    pub(crate) const fn new(until: Option<Instant>) -> Self {
        Self { until, sleep: None }
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(until) = *this.until else {
            return Poll::Pending;
        };
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(until)));
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Pending,
        }
    }
}

// === impl Last ===

impl<T, M> Last<T, M> {
    pub(crate) const fn new(
        mark: M,
        default: Option<Arc<T>>,
        settings: Settings,
        failure: Failure,
    ) -> Self {
        Self {
            mark,
            default,
            settings,
            failure,
        }
    }
}

impl<T: Clone, M: Mark<T>> Last<T, M> {
    /// The first link of the chain that holds, tagged.
    fn answer(&self, kept: Option<Kept<T>>) -> Option<Sourced<T>> {
        let mut answer = match (self.fresh(kept), &self.default) {
            (Some(kept), _) => Sourced::cached(kept.value, kept.age, &self.failure),
            (None, Some(default)) => Sourced::degraded(T::clone(default), &self.failure),
            (None, None) => return self.unavailable(),
        };
        self.mark
            .tag(&mut answer.value, &answer.source, answer.cause.as_ref());
        Some(answer)
    }

    /// Presence decides, whatever the value is: an empty answer is an answer.
    fn fresh(&self, kept: Option<Kept<T>>) -> Option<Kept<T>> {
        let kept = kept?;
        if kept.age > self.settings.max_stale {
            event::too_old(&self.failure, kept.age);
            return None;
        }
        Some(kept)
    }

    fn unavailable(&self) -> Option<Sourced<T>> {
        if self.settings.explicit {
            return None;
        }
        let cause = (&self.failure).into();
        let mut value = self.mark.unavailable(&cause)?;
        self.mark.tag(&mut value, &Source::Degraded, Some(&cause));
        Some(Sourced {
            value,
            source: Source::Degraded,
            cause: Some(cause),
        })
    }
}
