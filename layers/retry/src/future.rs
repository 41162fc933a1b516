//! The response of a service that retries.

use std::{
    fmt,
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use steadfast_classify::{Call, Classified};
use tokio::time::{Sleep, sleep};
use tower::retry::budget::Budget;
use tower_service::Service;

use crate::{NoBudget, attempts::Attempts, handle::Shared};

/// Response future of [`Retry`](crate::Retry): all attempts of one call, and the waits
/// between them.
///
/// # Cancel safety
///
/// Dropping it drops the attempt that is running, which is then cancelled like any other
/// dropped call, and no further attempt is made. What a retry took from the budget stays
/// taken.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S, R, B = NoBudget>
where
    S: Service<R>,
    B: ?Sized,
{
    // First, so that the attempt is dropped before anything it may have come from.
    #[pin]
    state: State<S, S::Future, S::Error>,
    attempts: Attempts<R>,
    shared: Arc<Shared<S, B>>,
}

#[pin_project(project = StateProj)]
pub(crate) enum State<S, F, E> {
    /// An attempt failed, and it and its error are gone.
    Waiting {
        #[pin]
        sleep: Sleep,
    },
    /// The next attempt waits for its service to be ready.
    Readying { service: S },
    /// The service failed to become ready for the first attempt.
    Unready { error: Option<E> },
    /// An attempt is running.
    Calling {
        #[pin]
        future: F,
    },
}

/// An attempt that failed, and whether the service was called for it.
struct Failed<E> {
    error: E,
    called: bool,
}

// === impl ResponseFuture ===

impl<S, R, B> ResponseFuture<S, R, B>
where
    S: Service<R>,
    B: ?Sized,
{
    pub(crate) const fn new(
        shared: Arc<Shared<S, B>>,
        attempts: Attempts<R>,
        state: State<S, S::Future, S::Error>,
    ) -> Self {
        Self {
            state,
            attempts,
            shared,
        }
    }
}

impl<S, R, B> Future for ResponseFuture<S, R, B>
where
    S: Service<R> + Clone,
    S::Error: Classified,
    R: Call + Clone,
    B: Budget + ?Sized,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let attempt = this
                .state
                .as_mut()
                .poll_attempt(cx, this.attempts, this.shared);
            let Failed { error, called } = match ready!(attempt) {
                Ok(response) => {
                    this.attempts.succeeded();
                    return Poll::Ready(Ok(response));
                }
                Err(failed) => failed,
            };
            match this.attempts.failed(error, called, &this.shared.layer) {
                ControlFlow::Continue(wait) => {
                    // Drops the attempt, before the wait begins.
                    this.state.set(State::Waiting { sleep: sleep(wait) });
                }
                ControlFlow::Break(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

// === impl State ===

impl<S, F, E> State<S, F, E> {
    /// Drives one attempt, with the wait before it, to its end.
    fn poll_attempt<R, B>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        attempts: &mut Attempts<R>,
        shared: &Shared<S, B>,
    ) -> Poll<Result<S::Response, Failed<E>>>
    where
        S: Service<R, Future = F, Error = E> + Clone,
        F: Future<Output = Result<S::Response, E>>,
        R: Call + Clone,
        B: ?Sized,
    {
        loop {
            match self.as_mut().project() {
                // Waiting => (Waiting | Readying)
                StateProj::Waiting { sleep } => {
                    ready!(sleep.poll(cx));
                    let service = shared.service();
                    self.set(Self::Readying { service });
                }
                // Readying => (Readying | Calling | failed)
                StateProj::Readying { service } => match ready!(service.poll_ready(cx)) {
                    Ok(()) => {
                        let future = service.call(attempts.request());
                        self.set(Self::Calling { future });
                    }
                    Err(error) => return Poll::Ready(Err(Failed::unready(error))),
                },
                // Unready => failed
                StateProj::Unready { error } => {
                    let error = error.take().expect("polled after completion");
                    return Poll::Ready(Err(Failed::unready(error)));
                }
                // Calling => (Calling | failed | done)
                StateProj::Calling { future } => return future.poll(cx).map_err(Failed::called),
            }
        }
    }
}

// === impl Failed ===

impl<E> Failed<E> {
    const fn called(error: E) -> Self {
        Self {
            error,
            called: true,
        }
    }

    const fn unready(error: E) -> Self {
        Self {
            error,
            called: false,
        }
    }
}

impl<S, R, B> fmt::Debug for ResponseFuture<S, R, B>
where
    S: Service<R>,
    B: ?Sized,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
