//! The response of a service that falls back.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use steadfast_classify::{Class, Classified, Failure};

use crate::{Sourced, Ticket, event};

/// Response future of [`Fallback`](crate::Fallback).
///
/// # Panics
///
/// When polled again after it has completed.
///
/// # Cancel safety
///
/// Dropping it drops the inner future or the recovery, whichever is under way, and the
/// call's ticket: a call dropped before its end counts as one that may have run.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<F, K, V, E> {
    #[pin]
    state: State<F, K, V, E>,
}

#[pin_project(project = StateProj)]
enum State<F, K, V, E> {
    Calling {
        // Dropped first: what the store learns of a call's end, it learns after the end.
        #[pin]
        inner: F,
        ticket: Option<K>,
    },
    Recovering {
        #[pin]
        recovery: V,
        failed: Option<Failed<E>>,
    },
    Passing {
        failed: Option<Failed<E>>,
    },
}

/// The error to return if nothing better is found, and what it means.
struct Failed<E> {
    error: E,
    failure: Failure,
}

// === impl ResponseFuture ===

impl<F, K, V, E> ResponseFuture<F, K, V, E> {
    pub(crate) const fn calling(inner: F, ticket: K) -> Self {
        Self {
            state: State::Calling {
                inner,
                ticket: Some(ticket),
            },
        }
    }

    /// A call that the inner service was not ready for.
    pub(crate) fn refused<T>(ticket: K, error: E, failure: Failure) -> Self
    where
        K: Ticket<T, Recovery = V>,
    {
        Self {
            state: State::failed(ticket, Failed { error, failure }),
        }
    }
}

impl<F, K, V, T, E> Future for ResponseFuture<F, K, V, E>
where
    F: Future<Output = Result<T, E>>,
    K: Ticket<T, Recovery = V>,
    V: Future<Output = Option<Sourced<T>>>,
    E: Classified,
{
    type Output = Result<Sourced<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                // Calling => (Calling | Recovering | Passing | done)
                StateProj::Calling { inner, ticket } => {
                    let result = ready!(inner.poll(cx));
                    let ticket = ticket.take().expect("polled after completion");
                    match result {
                        Ok(value) => return Poll::Ready(Ok(finish(ticket, value))),
                        // Replaces the inner future too, so that nothing of the failed
                        // call is held while another answer is looked for.
                        Err(error) => {
                            let failed = Failed::new(error);
                            state.set(State::failed(ticket, failed));
                        }
                    }
                }
                // Recovering => (Recovering | done)
                StateProj::Recovering { recovery, failed } => {
                    let recovered = ready!(recovery.poll(cx));
                    let failed = failed.take().expect("polled after completion");
                    return Poll::Ready(match recovered {
                        Some(answer) => {
                            event::recovered(&answer.source, &failed.failure);
                            Ok(answer)
                        }
                        None => failed.pass(),
                    });
                }
                // Passing => done
                StateProj::Passing { failed } => {
                    let failed = failed.take().expect("polled after completion");
                    return Poll::Ready(failed.pass());
                }
            }
        }
    }
}

impl<F, K, V, E> fmt::Debug for ResponseFuture<F, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Calling { .. } => "calling",
            State::Recovering { .. } => "recovering",
            State::Passing { .. } => "passing",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

fn finish<T, K: Ticket<T>>(ticket: K, mut value: T) -> Sourced<T> {
    ticket.finish(&mut value);
    event::live();
    Sourced::live(value)
}

// === impl State ===

impl<F, K, V, E> State<F, K, V, E> {
    fn failed<T>(ticket: K, failed: Failed<E>) -> Self
    where
        K: Ticket<T, Recovery = V>,
    {
        let recovery = ticket.recover(&failed.failure);
        let failed = Some(failed);
        match recovery {
            Some(recovery) => Self::Recovering { recovery, failed },
            None => Self::Passing { failed },
        }
    }
}

// === impl Failed ===

impl<E: Classified> Failed<E> {
    /// Of an error in which there is no failure nobody can tell whether the call ran.
    fn new(error: E) -> Self {
        let failure = error.failure().cloned();
        Self {
            failure: failure.unwrap_or_else(|| Failure::new(Class::Unknown)),
            error,
        }
    }
}

impl<E> Failed<E> {
    fn pass<T>(self) -> Result<T, E> {
        event::passed_on(&self.failure);
        Err(self.error)
    }
}
