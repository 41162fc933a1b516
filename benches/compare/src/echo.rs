//! The service that all stacks are put around, and the requests it takes.

use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use steadfast::{Call, CallContext, Effect, Failure};
use tower::Service;

/// A request as the peers need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain(pub u64);

/// A request as our layers want it: with a place for what they write. It is larger, and
/// that is part of what they cost.
#[derive(Clone, Debug)]
pub struct Contextual {
    number: u64,
    context: CallContext,
}

/// A request with a number in it, which its answer repeats.
pub trait Numbered: Clone + Send + Sync + 'static {
    /// The request with this number.
    fn new(number: u64) -> Self;

    /// Its number.
    fn number(&self) -> u64;
}

/// A service that answers with the number of the request: at once, or after being pending
/// once. `E` is the error that it never gives.
#[derive(Debug)]
pub struct Echo<E> {
    pending_once: bool,
    error: PhantomData<fn() -> E>,
}

/// The error of a service that knows no failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Never;

/// The answer of an [`Echo`].
#[derive(Debug)]
pub struct Answer<E> {
    pending: bool,
    number: u64,
    error: PhantomData<fn() -> E>,
}

// === impl Numbered ===

impl Numbered for Plain {
    fn new(number: u64) -> Self {
        Self(number)
    }

    fn number(&self) -> u64 {
        self.0
    }
}

impl Numbered for Contextual {
    fn new(number: u64) -> Self {
        Self {
            number,
            context: CallContext::new(),
        }
    }

    fn number(&self) -> u64 {
        self.number
    }
}

impl Call for Contextual {
    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

// === impl Echo ===

impl<E> Echo<E> {
    /// An echo that is ready at once, or pending once.
    pub const fn new(pending_once: bool) -> Self {
        Self {
            pending_once,
            error: PhantomData,
        }
    }
}

impl<E> Clone for Echo<E> {
    fn clone(&self) -> Self {
        Self::new(self.pending_once)
    }
}

impl<R: Numbered, E> Service<R> for Echo<E> {
    type Response = u64;
    type Error = E;
    type Future = Answer<E>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Answer<E> {
        Answer {
            pending: self.pending_once,
            number: request.number(),
            error: PhantomData,
        }
    }
}

impl<E> Future for Answer<E> {
    type Output = Result<u64, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.pending) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.number))
    }
}

// === impl Never ===

impl std::fmt::Display for Never {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("never")
    }
}

impl std::error::Error for Never {}

/// The echo that our layers are put around.
pub type OurEcho = Echo<Failure>;
/// The echo that the peers are put around.
pub type TheirEcho = Echo<Never>;
