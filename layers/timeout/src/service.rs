//! The service that limits the time of an attempt.

use std::task::{Context, Poll};

use steadfast_classify::{Call, CallContext, Failure, Flight};
use tokio::time::Instant;
use tower_service::Service;

use crate::{InvalidSettings, ResponseFuture, Settings, clock::Clock};

/// A service whose every call ends in time, and that says whether it was sent.
///
/// It is always ready. A clone of the inner service is made ready inside the response
/// future, so that waiting for it counts as connecting.
///
/// A call that asks to be tracked ([`CallContext::is_tracked`]) is given a [`Flight`]
/// on its way to the wire. When a limit runs out while the flight is queued there, it is
/// withdrawn, and the failure is a [`Class::NotSent`](steadfast_classify::Class::NotSent)
/// that may be repeated whatever the call does. A call that was sent, or whose wire says
/// nothing, ends as [`Class::Timeout`](steadfast_classify::Class::Timeout).
#[derive(Clone, Copy, Debug)]
pub struct Timeout<S> {
    inner: S,
    settings: Settings,
}

// === impl Timeout ===

impl<S> Timeout<S> {
    /// Limits the time of each call of `inner`.
    ///
    /// # Errors
    ///
    /// A limit of zero, or one above the limit of the whole attempt.
    pub fn new(inner: S, settings: Settings) -> Result<Self, InvalidSettings> {
        let settings = settings.checked()?;
        Ok(Self::with_checked(inner, settings))
    }

    pub(crate) const fn with_checked(inner: S, settings: Settings) -> Self {
        Self { inner, settings }
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, R> Service<R> for Timeout<S>
where
    S: Service<R> + Clone,
    S::Error: From<Failure>,
    R: Call,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, R, S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: R) -> Self::Future {
        // The clocks start here, however late the future is polled.
        let called = Instant::now();
        let clock = Clock::new(&self.settings, request.context(), called);
        let flight = request
            .context_mut()
            .filter(|context| context.is_tracked())
            .map(|context| track(context, called));
        // Never made ready itself, so that a clone of it holds nothing.
        ResponseFuture::new(self.inner.clone(), request, clock, flight)
    }
}

/// Gives this attempt a proof of delivery. One that is there already belongs to a layer
/// further out, which may watch several attempts: it proves nothing of this one.
fn track(context: &mut CallContext, called: Instant) -> Flight {
    let flight = Flight::at(called);
    context.set_flight(flight.clone());
    flight
}
