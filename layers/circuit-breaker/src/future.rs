//! The response of a service behind a circuit.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project::pin_project;
use steadfast_classify::Classified;
use tokio::time::Instant;

use crate::ticket::Ticket;

/// Response future of [`CircuitBreaker`](crate::CircuitBreaker).
///
/// # Cancel safety
///
/// Dropping it drops the call underneath, and gives the place of a probe back. It says
/// nothing about the server: whoever wants a hung server to count has to end the call by a
/// timeout underneath.
///
/// # Panics
///
/// If it is polled again after it was ready.
#[pin_project]
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<F, E> {
    #[pin]
    state: State<F, E>,
}

#[pin_project(project = StateProj)]
#[derive(Debug)]
enum State<F, E> {
    Calling {
        // Before the ticket: the call has to be gone when its place is free again.
        #[pin]
        inner: F,
        ticket: Ticket,
        started: Option<Instant>,
    },
    Failed(Option<E>),
}

// === impl ResponseFuture ===

impl<F, E> ResponseFuture<F, E> {
    pub(crate) const fn calling(inner: F, ticket: Ticket, started: Option<Instant>) -> Self {
        Self {
            state: State::Calling {
                inner,
                ticket,
                started,
            },
        }
    }

    pub(crate) const fn failed(error: E) -> Self {
        Self {
            state: State::Failed(Some(error)),
        }
    }
}

impl<F, Res, E> Future for ResponseFuture<F, E>
where
    F: Future<Output = Result<Res, E>>,
    E: Classified,
{
    type Output = Result<Res, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            // Failed => done
            StateProj::Failed(error) => {
                Poll::Ready(Err(error.take().expect("polled after it was ready")))
            }
            // Calling => (Calling | done)
            StateProj::Calling {
                inner,
                ticket,
                started,
            } => match inner.poll(cx) {
                Poll::Ready(mut result) => {
                    match &mut result {
                        Ok(_) => ticket.succeeded(*started),
                        Err(error) => ticket.failed(*started, error),
                    }
                    Poll::Ready(result)
                }
                Poll::Pending => {
                    // A call that never waits took no time, and a clock takes some to read.
                    started.get_or_insert_with(Instant::now);
                    Poll::Pending
                }
            },
        }
    }
}
