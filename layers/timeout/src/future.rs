//! The response of a service with time limits.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project::pin_project;
use steadfast_classify::{Class, Failure, Flight, Phase};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    Elapsed,
    attempt::Attempt,
    clock::{Clock, Verdict},
    give_up::give_up,
    observe,
    timer::Timer,
};

/// Response future of [`Timeout`](crate::Timeout).
///
/// # Panics
///
/// When polled after its end, and, unless the inner service answers at once, outside a
/// tokio runtime with its timer enabled.
///
/// # Cancel safety
///
/// Dropping it drops the inner future, or the inner service that was being made ready,
/// and with it whatever that holds.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S, R, F> {
    #[pin]
    attempt: Attempt<S, R, F>,
    #[pin]
    timer: Timer,
    clock: Clock,
    /// When the inner service was called.
    begun: Option<Instant>,
    flight: Option<Flight>,
}

// === impl ResponseFuture ===

impl<S, R, F> ResponseFuture<S, R, F> {
    pub(crate) fn new(inner: S, request: R, clock: Clock, flight: Option<Flight>) -> Self {
        Self {
            attempt: Attempt::Waiting { inner, request },
            timer: Timer::default(),
            clock,
            begun: None,
            flight,
        }
    }

    /// Pending while the attempt has time left.
    fn poll_limits(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Failure> {
        let mut this = self.project();
        // No clock is read until a timer fires: an earlier `now` only looks earlier.
        let mut now = this.clock.called();
        if this.timer.is_armed() {
            ready!(this.timer.as_mut().poll(cx));
            now = Instant::now();
        }
        loop {
            let view = this.clock.view(*this.begun, this.flight.as_ref());
            match this.clock.check(now, view) {
                Verdict::Wait(Some(at)) => {
                    this.timer.as_mut().arm(at);
                    ready!(this.timer.as_mut().poll(cx));
                    now = Instant::now();
                }
                Verdict::Wait(None) => return Poll::Pending,
                Verdict::Over(elapsed) => {
                    let called = this.begun.is_some();
                    if let Some(class) = give_up(called, this.flight.as_ref(), elapsed.phase()) {
                        let ran = now.saturating_duration_since(this.clock.called());
                        return Poll::Ready(failure(class, elapsed, ran, this.flight.as_ref()));
                    }
                    // It was sent between the look and the withdrawal: look again.
                }
            }
        }
    }
}

impl<S, R> Future for ResponseFuture<S, R, S::Future>
where
    S: Service<R>,
    S::Error: From<Failure>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.as_mut().project();
        let was_waiting = this.attempt.is_waiting();
        if was_waiting && let Some(elapsed) = this.clock.missed() {
            this.attempt.set(Attempt::Over);
            let failure = failure(Class::NotSent, elapsed, Duration::ZERO, None);
            return Poll::Ready(Err(failure.into()));
        }
        // A response that is ready at the deadline wins.
        if let Poll::Ready(result) = this.attempt.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        if was_waiting && !this.attempt.is_waiting() {
            // Without a timer it was ready at once: the clocks start with the call.
            let at_once = !this.timer.is_armed();
            *this.begun = Some(if at_once {
                this.clock.called()
            } else {
                Instant::now()
            });
        }
        let failure = ready!(self.as_mut().poll_limits(cx));
        // The call is cancelled and what it held is free before anybody hears of it.
        self.project().attempt.set(Attempt::Over);
        Poll::Ready(Err(failure.into()))
    }
}

impl<S, R, F> fmt::Debug for ResponseFuture<S, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("state", &self.attempt.state())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

fn failure(class: Class, elapsed: Elapsed, ran: Duration, flight: Option<&Flight>) -> Failure {
    // Whatever limit it is: one that passed while we kept the call waiting is no fault of
    // the server's.
    let held = flight.is_some_and(|flight| flight.is_sole() && flight.is_held());
    let failure = Failure::new(class)
        .with_phase(if held { Phase::Held } else { elapsed.phase() })
        .with_elapsed(ran)
        .with_layer("timeout")
        .with_source(elapsed);
    let failure = match flight.and_then(Flight::origin) {
        Some(origin) => failure.with_origin(origin),
        None => failure,
    };
    observe::attempt_over(&failure, elapsed);
    failure
}
