//! What the tests share.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::{
    fmt::Debug,
    future::{Ready, ready},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use steadfast_budget::{Global, Limit, OverBudget, Quota};
use steadfast_classify::{BoxError, Call, CallContext, Class, Failure};
use tokio::time::Instant;
use tower::{Service, ServiceExt};

/// A request of a session, with a context.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) session: u64,
    pub(crate) tool: u64,
    context: CallContext,
}

/// A service that reserves a permit when it is made ready, as a pool or a concurrency
/// limit does, and counts them.
#[derive(Debug)]
pub(crate) struct Reserving {
    pub(crate) reserved: Arc<AtomicUsize>,
    pub(crate) called: Arc<AtomicUsize>,
    holds: bool,
}

pub(crate) fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

pub(crate) fn limit(name: &str, text: &str) -> Limit {
    Limit::new(name, quota(text))
}

/// A limit for all calls, named "all".
pub(crate) fn global(text: &str) -> Global {
    Global::new(limit("all", text))
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Makes the service ready, which has to work.
pub(crate) async fn make_ready<S>(service: &mut S)
where
    S: Service<Request, Error: Debug>,
{
    service.ready().await.expect("it gets ready");
}

/// Makes the service ready and calls it.
pub(crate) async fn send<S>(service: &mut S, request: Request) -> Result<S::Response, S::Error>
where
    S: Service<Request>,
{
    service.ready().await?.call(request).await
}

/// The failure in an error of a mock, which has to be there.
pub(crate) fn failure(error: &BoxError) -> &Failure {
    error.downcast_ref().expect("a failure")
}

/// Asserts that the failure is a rejection, and returns what it is over.
pub(crate) fn over(failure: &Failure) -> &OverBudget {
    assert_eq!(failure.class(), Class::Rejected);
    assert!(!failure.may_have_run());
    failure.find_source().expect("it is over budget")
}

// === impl Request ===

impl Request {
    pub(crate) fn of(session: u64) -> Self {
        Self {
            session,
            ..Self::default()
        }
    }

    pub(crate) fn with_tool(mut self, tool: u64) -> Self {
        self.tool = tool;
        self
    }

    pub(crate) fn with_deadline(mut self, at: Instant) -> Self {
        self.context.cap_deadline(at);
        self
    }
}

impl Call for Request {
    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

// === impl Reserving ===

impl Reserving {
    pub(crate) fn new() -> Self {
        Self {
            reserved: Arc::default(),
            called: Arc::default(),
            holds: false,
        }
    }

    pub(crate) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::SeqCst)
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.holds) {
            self.reserved.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Clone for Reserving {
    fn clone(&self) -> Self {
        Self {
            reserved: Arc::clone(&self.reserved),
            called: Arc::clone(&self.called),
            holds: false,
        }
    }
}

impl Drop for Reserving {
    fn drop(&mut self) {
        self.release();
    }
}

impl<R> Service<R> for Reserving {
    type Response = ();
    type Error = Failure;
    type Future = Ready<Result<(), Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if !std::mem::replace(&mut self.holds, true) {
            self.reserved.fetch_add(1, Ordering::SeqCst);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: R) -> Self::Future {
        assert!(self.holds, "called without being made ready");
        self.release();
        self.called.fetch_add(1, Ordering::SeqCst);
        ready(Ok(()))
    }
}
