//! The response of a service with a deadline.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use steadfast_classify::{Class, Failure, Phase};
use tokio::time::Instant;
use tower_service::Service;

use crate::{Elapsed, attempt::Attempt, observe, timer::Timer};

/// Response future of [`Deadline`](crate::Deadline).
///
/// # Panics
///
/// When polled after its end, and, if it keeps a timer and the inner service does not
/// answer at once, outside a tokio runtime with its timer enabled.
///
/// # Cancel safety
///
/// Dropping it drops the inner future, or the inner service that was being made ready,
/// and with it whatever that holds.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct DeadlineFuture<S, R, F> {
    #[pin]
    attempt: Attempt<S, R, F>,
    #[pin]
    timer: Timer,
    called: Instant,
    /// `None` where others end the call, or it has no deadline.
    end: Option<Instant>,
}

// === impl DeadlineFuture ===

impl<S, R, F> DeadlineFuture<S, R, F> {
    pub(crate) fn new(attempt: Attempt<S, R, F>, called: Instant, end: Option<Instant>) -> Self {
        Self {
            attempt,
            timer: Timer::default(),
            called,
            end,
        }
    }

    /// Ends the call: its work is dropped before anybody hears of it.
    fn give_up(self: Pin<&mut Self>, end: Instant, ran_to: Instant) -> Failure {
        let mut this = self.project();
        let class = if this.attempt.is_waiting() {
            Class::NotSent
        } else {
            // Which of its attempts were sent is not to be seen from here.
            Class::Timeout
        };
        this.attempt.set(Attempt::Over);
        let elapsed = Elapsed::new(Phase::Total, end.saturating_duration_since(*this.called));
        let failure = Failure::new(class)
            .with_phase(Phase::Total)
            .with_elapsed(ran_to.saturating_duration_since(*this.called))
            .with_layer("deadline")
            .with_source(elapsed);
        observe::deadline_passed(&failure, elapsed);
        failure
    }
}

impl<S, R> Future for DeadlineFuture<S, R, S::Future>
where
    S: Service<R>,
    S::Error: From<Failure>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let called = *this.called;
        let missed = this.end.filter(|end| *end <= called);
        if let Some(end) = missed
            && this.attempt.is_waiting()
        {
            let failure = self.give_up(end, called);
            return Poll::Ready(Err(failure.into()));
        }
        // A response that is ready at the deadline wins.
        if let Poll::Ready(result) = this.attempt.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        let Some(end) = *this.end else {
            return Poll::Pending;
        };
        if !this.timer.is_armed() {
            this.timer.as_mut().arm(end);
        }
        ready!(this.timer.poll(cx));
        let failure = self.give_up(end, Instant::now());
        Poll::Ready(Err(failure.into()))
    }
}

impl<S, R, F> fmt::Debug for DeadlineFuture<S, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineFuture")
            .field("state", &self.attempt.state())
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
