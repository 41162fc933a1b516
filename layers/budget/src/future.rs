//! The response future of the service that admits.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use pin_project::pin_project;
use steadfast_classify::Failure;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use crate::{Admit, Patience, Verdict};

/// Response future of [`Budget`](crate::Budget).
///
/// # Cancel safety
///
/// Dropping it leaves the line it waits in, and drops the inner future. What the call
/// already paid to a limit is not given back.
///
/// # Panics
///
/// Polling it again after it has ended panics.
#[pin_project]
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<S, A, R>
where
    S: Service<R>,
    A: Admit<R>,
{
    #[pin]
    state: State<S, A, R>,
}

#[pin_project(project = StateProj)]
enum State<S, A, R>
where
    S: Service<R>,
    A: Admit<R>,
{
    /// It waits for its turn.
    Waiting {
        waiting: Option<Waiting<S, A, R>>,
        /// Made when it first waits, then moved to each new turn.
        #[pin]
        timer: Option<Sleep>,
    },
    /// It was admitted, and its own clone of the inner service is made ready.
    Readying { call: Option<(S, R)> },
    /// It was called.
    Responding {
        #[pin]
        future: S::Future,
    },
    /// It was rejected when it came.
    Rejected { failure: Option<Failure> },
    /// It has ended.
    Done,
}

/// A call that waits for its turn. It holds no readiness and no permit.
pub(crate) struct Waiting<S, A, R>
where
    A: Admit<R>,
{
    /// First, so that the line is left before anything else is dropped.
    pub(crate) ticket: A::Ticket,
    pub(crate) request: R,
    pub(crate) inner: S,
    pub(crate) admission: A,
    pub(crate) since: Instant,
    pub(crate) until: Option<Instant>,
}

const ENDED: &str = "polled after it ended";

// === impl ResponseFuture ===

impl<S, A, R> ResponseFuture<S, A, R>
where
    S: Service<R>,
    A: Admit<R>,
{
    pub(crate) const fn waiting(waiting: Waiting<S, A, R>) -> Self {
        Self::new(State::Waiting {
            waiting: Some(waiting),
            timer: None,
        })
    }

    pub(crate) const fn readying(inner: S, request: R) -> Self {
        Self::new(State::Readying {
            call: Some((inner, request)),
        })
    }

    pub(crate) const fn responding(future: S::Future) -> Self {
        Self::new(State::Responding { future })
    }

    pub(crate) const fn rejected(failure: Failure) -> Self {
        Self::new(State::Rejected {
            failure: Some(failure),
        })
    }

    const fn new(state: State<S, A, R>) -> Self {
        Self { state }
    }
}

impl<S, A, R> Future for ResponseFuture<S, A, R>
where
    S: Service<R>,
    S::Error: From<Failure>,
    A: Admit<R>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                // Waiting => (Waiting | Readying | Done)
                StateProj::Waiting { waiting, timer } => {
                    match ready!(poll_turn(waiting, timer, cx)) {
                        Ok(call) => State::Readying { call: Some(call) },
                        Err(failure) => {
                            state.set(State::Done);
                            return Poll::Ready(Err(failure.into()));
                        }
                    }
                }
                // Readying => (Readying | Responding | Done)
                StateProj::Readying { call } => {
                    let (inner, _) = call.as_mut().expect(ENDED);
                    if let Err(error) = ready!(inner.poll_ready(cx)) {
                        state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    let (mut inner, request) = call.take().expect(ENDED);
                    let future = inner.call(request);
                    State::Responding { future }
                }
                // Responding => (Responding | end)
                StateProj::Responding { future } => return future.poll(cx),
                // Rejected => end
                StateProj::Rejected { failure } => {
                    return Poll::Ready(Err(failure.take().expect(ENDED).into()));
                }
                StateProj::Done => unreachable!("{ENDED}"),
            };
            state.set(next);
        }
    }
}

/// Asks for the call's turn, each time it is polled and until it has it, and waits in
/// between.
fn poll_turn<S, A, R>(
    slot: &mut Option<Waiting<S, A, R>>,
    mut timer: Pin<&mut Option<Sleep>>,
    cx: &mut Context<'_>,
) -> Poll<Result<(S, R), Failure>>
where
    A: Admit<R>,
{
    loop {
        let waiting = slot.as_mut().expect(ENDED);
        match waiting.ask(cx.waker()) {
            Verdict::Admitted => {
                let Waiting { inner, request, .. } = slot.take().expect(ENDED);
                return Poll::Ready(Ok((inner, request)));
            }
            Verdict::Over(over) => {
                let waited = waiting.since.elapsed();
                return Poll::Ready(Err(over.into_failure(Some(waited))));
            }
            Verdict::Wait(turn) => {
                match timer.as_mut().as_pin_mut() {
                    Some(timer) if timer.deadline() == turn => {}
                    Some(timer) => timer.reset(turn),
                    None => timer.set(Some(sleep_until(turn))),
                }
                if let Some(timer) = timer.as_mut().as_pin_mut() {
                    ready!(timer.poll(cx));
                }
            }
        }
    }
}

impl<S, A, R> fmt::Debug for ResponseFuture<S, A, R>
where
    S: Service<R>,
    A: Admit<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Waiting { .. } => "Waiting",
            State::Readying { .. } => "Readying",
            State::Responding { .. } => "Responding",
            State::Rejected { .. } => "Rejected",
            State::Done => "Done",
        };
        f.debug_tuple("ResponseFuture").field(&state).finish()
    }
}

// === impl Waiting ===

impl<S, A, R> Waiting<S, A, R>
where
    A: Admit<R>,
{
    fn ask(&mut self, waker: &Waker) -> Verdict {
        let patience = Patience::new(self.until).with_waker(waker);
        self.admission
            .admit(&self.request, &mut self.ticket, patience)
    }
}
