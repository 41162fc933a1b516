//! The service that turns calls away.

use std::{
    any::Any,
    fmt,
    task::{Context, Poll},
};

use steadfast_classify::{Class, Classified, Failure};
use tower_service::Service;

use crate::{CircuitBreakerLayer, ResponseFuture, Select, Single};

/// A service whose calls are turned away while its server is down. See
/// [`CircuitBreakerLayer`].
///
/// A clone shares the circuit, and is not ready.
#[derive(Debug)]
pub struct CircuitBreaker<S, Sel = Single> {
    inner: S,
    select: Sel,
    kept: Kept,
}

/// The error with which `inner` said that it will not be ready, until the next call gives
/// it back. Boxed, since only a request tells which type it is of, and that is no part of
/// the service's.
#[derive(Default)]
struct Kept(Option<Box<dyn Any + Send + Sync>>);

// === impl CircuitBreaker ===

impl<S, Sel> CircuitBreaker<S, Sel> {
    /// Puts `inner` behind the circuits of this layer.
    #[must_use]
    pub fn new(inner: S, layer: CircuitBreakerLayer<Sel>) -> Self {
        Self {
            inner,
            select: layer.into_select(),
            kept: Kept(None),
        }
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, Sel, R> Service<R> for CircuitBreaker<S, Sel>
where
    S: Service<R>,
    S::Error: From<Failure> + Classified + Send + Sync + 'static,
    Sel: Select<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, S::Error>;

    /// Waits for the service underneath, and reserves nothing. If that says that it will
    /// not be ready, this is ready, and the next call gives the error back: as the end of
    /// a call it is counted like any other.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.kept.0.is_some() {
            return Poll::Ready(Ok(()));
        }
        self.inner.poll_ready(cx).map(|ready| {
            if let Err(error) = ready {
                self.kept.0 = Some(Box::new(error));
            }
            Ok(())
        })
    }

    fn call(&mut self, request: R) -> Self::Future {
        let kept = self.kept.0.take();
        let mut ticket = match self.select.admit(&request) {
            Ok(ticket) => ticket,
            Err(failure) => return ResponseFuture::failed(failure.into()),
        };
        if let Some(kept) = kept {
            let mut error = give_back(kept);
            ticket.failed(None, &mut error);
            return ResponseFuture::failed(error);
        }
        let started = ticket.start();
        ResponseFuture::calling(self.inner.call(request), ticket, started)
    }
}

/// The error that was kept.
fn give_back<E: From<Failure> + 'static>(kept: Box<dyn Any + Send + Sync>) -> E {
    match kept.downcast() {
        Ok(error) => *error,
        // Made ready for one type of request, called with another that has another type of
        // error: all that is left to say is that nothing was sent.
        Err(_) => Failure::new(Class::NotSent).into(),
    }
}

impl<S: Clone, Sel: Clone> Clone for CircuitBreaker<S, Sel> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            select: self.select.clone(),
            kept: Kept(None),
        }
    }
}

// === impl Kept ===

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "an error" } else { "none" })
    }
}
