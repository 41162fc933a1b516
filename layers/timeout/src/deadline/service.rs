//! The service that gives a call its deadline.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use steadfast_classify::{Call, CallContext, Failure};
use tokio::time::Instant;
use tower_service::Service;

use crate::{DeadlineFuture, attempt::Attempt};

/// A service whose every logical call ends in time. See
/// [`DeadlineLayer`](crate::DeadlineLayer).
#[derive(Clone, Copy, Debug)]
pub struct Deadline<S> {
    inner: S,
    total: Duration,
    stamp_only: bool,
}

// === impl Deadline ===

impl<S> Deadline<S> {
    pub(crate) const fn new(inner: S, total: Duration, stamp_only: bool) -> Self {
        Self {
            inner,
            total,
            stamp_only,
        }
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Writes the deadline into the request. When the call ends, if this layer is to
    /// end it.
    fn stamp<R: Call>(&self, request: &mut R, called: Instant) -> Option<Instant> {
        let limits = request.context().and_then(CallContext::limits);
        let total = limits.and_then(|l| l.total).unwrap_or(self.total);
        // A deadline that is too far away to be said is none.
        let end = called.checked_add(total);
        let Some(context) = request.context_mut() else {
            return end;
        };
        if let Some(end) = end {
            context.cap_deadline(end);
        }
        context.deadline().filter(|_| !self.stamp_only)
    }
}

impl<S, R> Service<R> for Deadline<S>
where
    S: Service<R> + Clone,
    S::Error: From<Failure>,
    R: Call,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = DeadlineFuture<S, R, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.stamp_only {
            self.inner.poll_ready(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    }

    fn call(&mut self, mut request: R) -> Self::Future {
        let called = Instant::now();
        let end = self.stamp(&mut request, called);
        if self.stamp_only {
            // The instance that was made ready.
            let response = self.inner.call(request);
            return DeadlineFuture::new(Attempt::Called { response }, called, end);
        }
        // Never made ready itself, so that a clone of it holds nothing.
        let inner = self.inner.clone();
        DeadlineFuture::new(Attempt::Waiting { inner, request }, called, end)
    }
}
