//! The service that admits.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use steadfast_classify::{Call, CallContext, Failure};
use tokio::time::Instant;
use tower_service::Service;

use crate::{Admit, OverBudget, Patience, ResponseFuture, Verdict, clock::later, future::Waiting};

/// A service that lets calls through as far as a policy admits them. See
/// [`BudgetLayer`](crate::BudgetLayer).
///
/// Without a wait it is ready when its inner service is, and a rejected call lets go of
/// that readiness. With one it is ready at once, and each call makes a clone of the inner
/// service ready after it was admitted: a call that waits holds nothing that another one
/// could use.
#[derive(Clone, Copy, Debug)]
pub struct Budget<S, A> {
    inner: S,
    admission: A,
    max_wait: Duration,
}

/// What the policy said of a call that has just come.
enum Asked<T> {
    Admitted,
    Waits {
        ticket: T,
        since: Instant,
        until: Option<Instant>,
    },
    Over(OverBudget),
}

/// Until when a call that comes at `now` may wait. At its deadline it could only time
/// out, so it has to have its turn before that.
fn may_wait_until(now: Instant, max_wait: Duration, deadline: Option<Instant>) -> Option<Instant> {
    let bound = later(now, max_wait);
    match deadline {
        None => Some(bound),
        Some(deadline) => {
            let before = deadline.checked_sub(Duration::from_nanos(1))?;
            (before > now).then(|| before.min(bound))
        }
    }
}

// === impl Budget ===

impl<S, A> Budget<S, A> {
    /// Rejects at once what `admission` does not let through to `inner`.
    #[must_use]
    pub const fn new(inner: S, admission: A) -> Self {
        Self {
            inner,
            admission,
            max_wait: Duration::ZERO,
        }
    }

    /// Lets a call wait for its turn, see
    /// [`BudgetLayer::with_max_wait`](crate::BudgetLayer::with_max_wait).
    #[must_use]
    pub const fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// The policy.
    #[must_use]
    pub const fn admission(&self) -> &A {
        &self.admission
    }

    const fn may_wait(&self) -> bool {
        !self.max_wait.is_zero()
    }

    fn ask<R>(&self, request: &R) -> Asked<A::Ticket>
    where
        A: Admit<R>,
        R: Call,
    {
        let since = self.may_wait().then(Instant::now);
        let until = since.and_then(|since| {
            let deadline = request.context().and_then(CallContext::deadline);
            may_wait_until(since, self.max_wait, deadline)
        });
        let mut ticket = A::Ticket::default();
        let patience = Patience::new(until);
        match self.admission.admit(request, &mut ticket, patience) {
            Verdict::Admitted => Asked::Admitted,
            Verdict::Wait(_) => Asked::Waits {
                ticket,
                since: since.unwrap_or_else(Instant::now),
                until,
            },
            Verdict::Over(over) => Asked::Over(over),
        }
    }

    /// Gives up what the instance that was made ready may have reserved: only a call or a
    /// drop does that.
    fn let_go(&mut self)
    where
        S: Clone,
    {
        if !self.may_wait() {
            self.inner = self.inner.clone();
        }
    }
}

impl<S, A, R> Service<R> for Budget<S, A>
where
    S: Service<R> + Clone,
    S::Error: From<Failure>,
    A: Admit<R> + Clone,
    R: Call,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S, A, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.may_wait() {
            return Poll::Ready(Ok(()));
        }
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // Nothing is held across the inner call that its panic would have to drop, so that
        // its future is made where it is returned, and not copied there.
        match self.ask(&request) {
            Asked::Admitted if self.may_wait() => {
                ResponseFuture::readying(self.inner.clone(), request)
            }
            Asked::Admitted => ResponseFuture::responding(self.inner.call(request)),
            Asked::Waits {
                ticket,
                since,
                until,
            } => {
                self.let_go();
                ResponseFuture::waiting(Waiting {
                    ticket,
                    request,
                    inner: self.inner.clone(),
                    admission: self.admission.clone(),
                    since,
                    until,
                })
            }
            Asked::Over(over) => {
                self.let_go();
                ResponseFuture::rejected(over.into_failure(None))
            }
        }
    }
}
