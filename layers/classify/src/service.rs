//! The service that classifies.

use std::task::{Context, Poll};

use tower_service::Service;

use crate::{Class, Classify, Failure, Phase, ResponseFuture};

/// A service whose results are judged by a [`Classify`]. See
/// [`ClassifyLayer`](crate::ClassifyLayer).
#[derive(Clone, Copy, Debug)]
pub struct ClassifyService<S, C> {
    inner: S,
    classify: C,
}

// === impl ClassifyService ===

impl<S, C> ClassifyService<S, C> {
    /// Judges the results of `inner` by `classify`.
    #[must_use]
    pub const fn new(inner: S, classify: C) -> Self {
        Self { inner, classify }
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, C, R> Service<R> for ClassifyService<S, C>
where
    S: Service<R>,
    C: Classify<S::Response, S::Error> + Clone,
{
    type Response = C::Response;
    type Error = Failure;
    type Future = ResponseFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(cx).map(|ready| {
            ready.map_err(|error| match self.classify.classify(Err(error)) {
                // A classifier may make a success of an error, but a service that is
                // not ready cannot be called, whatever the reason.
                Ok(_) => Failure::new(Class::NotSent).with_phase(Phase::Connect),
                Err(failure) => not_sent(failure),
            })
        })
    }

    fn call(&mut self, request: R) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), self.classify.clone())
    }
}

/// A service that failed before it was called was not sent anything, whatever its error
/// would mean in the middle of a call.
fn not_sent(failure: Failure) -> Failure {
    match failure.class() {
        Class::Unknown | Class::Timeout => failure
            .with_class(Class::NotSent)
            .with_phase(Phase::Connect),
        Class::NotSent
        | Class::Overloaded
        | Class::Answered
        | Class::Rejected
        | Class::Cancelled => failure,
    }
}
