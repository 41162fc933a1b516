//! The service that retries.

use std::{
    any::Any,
    fmt,
    task::{Context, Poll, ready},
};

use steadfast_classify::{Call, Classified};
use tower::retry::budget::Budget;
use tower_service::Service;

use crate::{
    NoBudget, ResponseFuture, RetryLayer, attempts::Attempts, future::State, handle::Handle,
    random::Keys,
};

/// A service whose failed calls are repeated where that is safe and may help. Made by a
/// [`RetryLayer`].
///
/// A clone shares budget and random numbers, and drops the readiness of its original.
pub struct Retry<S, B: ?Sized = NoBudget> {
    inner: S,
    handle: Handle<S, B>,
    /// Made when first needed: most clones of a service never are called.
    keys: Option<Keys>,
    /// The error that the readiness of `inner` ended with, for the next call. Its type
    /// belongs to a request type, of which the service knows none yet.
    unready: Option<Box<dyn Any + Send + Sync>>,
}

// === impl Retry ===

impl<S, B: ?Sized> Retry<S, B> {
    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Clone, B: ?Sized> Retry<S, B> {
    pub(crate) fn new(inner: S, layer: RetryLayer<B>) -> Self {
        Self {
            handle: Handle::new(inner.clone(), layer),
            inner,
            keys: None,
            unready: None,
        }
    }
}

impl<S, B, R> Service<R> for Retry<S, B>
where
    S: Service<R> + Clone,
    S::Error: Classified + Send + Sync + 'static,
    R: Call + Clone,
    B: Budget + ?Sized,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, R, B>;

    /// Never an error: one of the inner service comes out of the next call, where it is
    /// an attempt.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.unready.is_none()
            && let Err(error) = ready!(self.inner.poll_ready(cx))
        {
            self.unready = Some(Box::new(error));
            // An instance that reported an error must not be used again.
            self.inner = self.handle.shared().service();
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let shared = self.handle.share();
        let layer = &shared.layer;
        layer.budget.deposit();
        let mut attempts = Attempts::new(request, layer.settings.max_retries, || {
            let keys = self.keys.get_or_insert_with(|| layer.random.keys());
            keys.next()
        });
        let Some(error) = self.unready.take() else {
            let future = self.inner.call(attempts.request());
            return ResponseFuture::new(shared, attempts, State::Calling { future });
        };
        let state = match error.downcast() {
            Ok(error) => State::Unready {
                error: Some(*error),
            },
            // Readiness failed for another type of request; this one asks again.
            Err(_) => State::Readying {
                service: shared.service(),
            },
        };
        ResponseFuture::new(shared, attempts, state)
    }
}

impl<S: Clone, B: ?Sized> Clone for Retry<S, B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            handle: self.handle.clone(),
            // Copied, both would give the same keys to different calls.
            keys: None,
            unready: None,
        }
    }
}

impl<S: fmt::Debug, B: ?Sized> fmt::Debug for Retry<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("settings", &self.handle.shared().layer.settings)
            .finish_non_exhaustive()
    }
}
