//! The response of a classified service.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use tracing::{Span, field::display};

use crate::{Classify, Failure};

/// Response future of [`ClassifyService`](crate::ClassifyService).
///
/// # Cancel safety
///
/// Dropping it drops the inner future; nothing else is held.
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<F, C> {
    #[pin]
    inner: F,
    classify: C,
}

// === impl ResponseFuture ===

impl<F, C> ResponseFuture<F, C> {
    pub(crate) const fn new(inner: F, classify: C) -> Self {
        Self { inner, classify }
    }
}

impl<F, C, Res, E> Future for ResponseFuture<F, C>
where
    F: Future<Output = Result<Res, E>>,
    C: Classify<Res, E>,
{
    type Output = Result<C::Response, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        let judged = this.classify.classify(result);
        if let Err(failure) = &judged {
            record(failure);
        }
        Poll::Ready(judged)
    }
}

/// Puts class, phase and origin on the current span, where it declares these fields.
fn record(failure: &Failure) {
    let span = Span::current();
    span.record("error.type", failure.class().as_str());
    if let Some(phase) = failure.phase() {
        span.record("steadfast.phase", phase.as_str());
    }
    span.record("steadfast.origin", display(failure.origin()));
}
