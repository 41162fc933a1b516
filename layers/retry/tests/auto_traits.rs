//! Which auto traits the types have.

use std::{
    cell::Cell,
    future::Ready,
    marker::PhantomData,
    task::{Context, Poll},
};

use steadfast_classify::Failure;
use steadfast_retry::{Backoff, NoBudget, ResponseFuture, Retry, RetryLayer, Settings};
use tower::Service;

mod support;
use support::Request;

const fn all<T: Send + Sync + Unpin>() {}
const fn send<T: Send>() {}

/// Goes from thread to thread, but is not shared by them, like a boxed service.
#[derive(Clone)]
struct NotSync(PhantomData<Cell<()>>);

impl Service<Request> for NotSync {
    type Response = ();
    type Error = Failure;
    type Future = Ready<Result<(), Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        std::future::ready(Ok(()))
    }
}

#[test]
fn what_the_inner_service_is_a_retry_is_too() {
    all::<Settings>();
    all::<Backoff>();
    all::<NoBudget>();
    all::<RetryLayer>();
    all::<Retry<support::Server>>();
    send::<ResponseFuture<support::Server, Request>>();

    // A boxed service is not `Sync`; its calls must be spawnable all the same.
    send::<Retry<NotSync>>();
    send::<ResponseFuture<NotSync, Request>>();
}

#[test]
fn a_call_is_no_larger_than_its_parts() {
    // A context is 72 bytes, a request with its effect 80.
    let inner = size_of::<<support::Server as Service<Request>>::Future>();
    let future = size_of::<ResponseFuture<support::Server, Request>>();
    let sleep = size_of::<tokio::time::Sleep>();
    assert!(
        future <= inner.max(sleep) + 80 + 48,
        "{future} over {inner}, {sleep}"
    );
}
