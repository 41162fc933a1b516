//! Readiness of the inner service, before the call and between its attempts.

use std::{
    future::{Ready, ready},
    task::{Context, Poll, Waker},
};

use steadfast_classify::{BoxError, Call, Class, Classified, Failure};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock::{self, Mock, SendResponse, Spawn};

mod support;
use support::{Handle, Request, even, layer, ms, secs};

type Retry = steadfast_retry::Retry<Mock<Request, &'static str>>;

fn spawned() -> (Spawn<Retry>, Handle) {
    mock::spawn_layer(layer(even()))
}

/// The request that has arrived, which is this attempt.
fn arrived(handle: &mut Handle, attempt: u32) -> SendResponse<&'static str> {
    let (request, reply) = assert_ready!(handle.poll_request()).expect("the service is alive");
    assert_eq!(request.context.attempt(), attempt);
    reply
}

#[tokio::test(start_paused = true)]
async fn trap_p10_a_readiness_error_is_an_attempt_of_the_next_call() {
    let (mut service, mut handle) = spawned();
    handle.send_error(Failure::new(Class::NotSent));
    assert_ready_ok!(service.poll_ready::<Request>());
    assert_ready_ok!(service.poll_ready::<Request>());

    let start = Instant::now();
    let call = service.call(Request::write());
    drop(service);
    let server = async {
        let (request, reply) = handle.next_request().await.unwrap();
        assert_eq!(request.context.attempt(), 2);
        assert_eq!(start.elapsed(), ms(100));
        reply.send_response("done");
    };
    let (result, ()) = tokio::join!(call, server);

    assert_eq!(result.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_that_may_not_be_repeated_comes_out_of_the_call_unchanged() {
    let (mut service, mut handle) = spawned();
    handle.send_error(Failure::new(Class::NotSent).with_permanent());
    assert_ready_ok!(service.poll_ready::<Request>());

    let mut call = task::spawn(service.call(Request::read()));

    let error: BoxError = assert_ready_err!(call.poll());
    assert!(error.downcast::<Failure>().unwrap().is_permanent());
    assert!(handle.poll_request().is_pending(), "nothing was called");
}

#[tokio::test(start_paused = true)]
async fn what_was_never_called_may_be_repeated_whatever_its_error_says() {
    let unknown = || Failure::new(Class::Unknown).into();
    let foreign = || BoxError::from("link broke");
    for error in [unknown, foreign] as [fn() -> BoxError; 2] {
        let (mut service, mut handle) = spawned();
        handle.send_error(error());
        assert_ready_ok!(service.poll_ready::<Request>());

        let call = service.call(Request::write());
        drop(service);
        let server = async {
            let (request, reply) = handle.next_request().await.unwrap();
            assert_eq!(request.context.attempt(), 2);
            // From here on it may have run.
            reply.send_error(error());
            assert!(handle.next_request().await.is_none(), "and is not repeated");
        };
        let (result, ()) = tokio::join!(call, server);

        let error = result.unwrap_err();
        if let Some(failure) = error.failure() {
            assert!(failure.may_have_run());
            assert_eq!(failure.attempts(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_was_made_did_not_run_whatever_its_error_says() {
    let (mut service, mut handle) = spawned();
    handle.send_error(Failure::new(Class::Unknown));
    assert_ready_ok!(service.poll_ready::<Request>());
    let request = Request::write().with_max_retries(0);

    let mut call = task::spawn(service.call(request));

    let failure = assert_ready_err!(call.poll())
        .downcast::<Failure>()
        .unwrap();
    assert_eq!(failure.class(), Class::Unknown);
    assert!(!failure.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_belongs_to_one_call_and_not_to_clones() {
    let (mut service, mut handle) = spawned();
    handle.send_error(Failure::new(Class::NotSent).with_permanent());
    assert_ready_ok!(service.poll_ready::<Request>());
    handle.allow(0);
    let mut clone = service.clone();
    assert_pending!(clone.poll_ready::<Request>());

    let mut call = task::spawn(service.call(Request::write()));
    assert_ready_err!(call.poll());

    assert_pending!(
        service.poll_ready::<Request>(),
        "asks its inner service again"
    );
}

#[tokio::test(start_paused = true)]
async fn trap_t5_a_readiness_error_between_attempts_is_an_attempt() {
    let (mut service, mut handle) = spawned();
    assert_ready_ok!(service.poll_ready::<Request>());
    let mut call = task::spawn(service.call(Request::write()));
    arrived(&mut handle, 1).send_error(Failure::new(Class::NotSent));
    assert_pending!(call.poll());

    // Before the second attempt the service fails to become ready.
    handle.send_error(Failure::new(Class::NotSent));
    advance(ms(100)).await;
    assert_pending!(call.poll());
    assert!(handle.poll_request().is_pending(), "nothing was called");

    // It was an attempt: the next wait is the second one, and then comes the third.
    advance(ms(199)).await;
    assert_pending!(call.poll());
    assert!(handle.poll_request().is_pending());
    advance(ms(1)).await;
    assert_pending!(call.poll());
    arrived(&mut handle, 3).send_response("done");
    assert_eq!(assert_ready_ok!(call.poll()), "done");
}

#[tokio::test(start_paused = true)]
async fn readiness_errors_alone_are_retried_only_so_often() {
    let (mut service, mut handle) = spawned();
    handle.send_error(Failure::new(Class::NotSent));
    assert_ready_ok!(service.poll_ready::<Request>());
    let mut call = task::spawn(service.call(Request::write()));

    for wait in [100, 200, 400] {
        assert_pending!(call.poll());
        handle.send_error(Failure::new(Class::NotSent));
        advance(ms(wait)).await;
    }

    let error: BoxError = assert_ready_err!(call.poll());
    let failure = error.downcast::<Failure>().unwrap();
    assert_eq!(failure.attempts(), 4);
    assert!(!failure.may_have_run());
    assert!(handle.poll_request().is_pending(), "nothing was called");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_between_attempts_is_waited_for() {
    let (mut service, mut handle) = spawned();
    assert_ready_ok!(service.poll_ready::<Request>());
    let mut call = task::spawn(service.call(Request::write()));
    arrived(&mut handle, 1).send_error(Failure::new(Class::NotSent));
    assert_pending!(call.poll());

    handle.allow(0);
    advance(secs(60)).await;
    assert_pending!(call.poll());
    assert!(handle.poll_request().is_pending());

    handle.allow(1);
    assert!(call.is_woken());
    assert_pending!(call.poll());
    arrived(&mut handle, 2).send_response("done");
    assert_eq!(assert_ready_ok!(call.poll()), "done");
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_readiness_failed_is_not_used_again() {
    let fragile = Fragile { broken: false };
    let mut service = layer(even()).layer(fragile);

    // Each attempt of each call gets an instance of its own, else it would panic.
    for _ in 0..2 {
        let result = (&mut service).oneshot(Request::write()).await;
        assert_eq!(result.unwrap_err().attempts(), 4);
    }
}

/// Never becomes ready, and must not be asked twice, as the contract allows.
#[derive(Debug)]
struct Fragile {
    broken: bool,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        Self { broken: false }
    }
}

impl Service<Request> for Fragile {
    type Response = &'static str;
    type Error = Failure;
    type Future = Ready<support::Answer>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        assert!(!self.broken, "used again after a readiness error");
        self.broken = true;
        Poll::Ready(Err(Failure::new(Class::NotSent)))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        ready(Ok("never"))
    }
}

/// Fails to become ready for one type of request, once, with that type's own error.
#[derive(Clone, Copy)]
struct TwoFaced;

#[derive(Clone, Copy)]
struct Other;

impl Call for Other {}

impl Service<Other> for TwoFaced {
    type Response = ();
    type Error = BoxError;
    type Future = Ready<Result<(), BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Err("not for this".into()))
    }

    fn call(&mut self, _: Other) -> Self::Future {
        ready(Ok(()))
    }
}

impl Service<Request> for TwoFaced {
    type Response = u32;
    type Error = Failure;
    type Future = Ready<Result<u32, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ready(Ok(request.context.attempt()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_of_another_request_type_does_not_reach_this_call() {
    let mut service = layer(even().with_max_retries(0)).layer(TwoFaced);
    let mut cx = Context::from_waker(Waker::noop());
    assert_ready_ok!(Service::<Other>::poll_ready(&mut service, &mut cx));

    let mut call = task::spawn(service.call(Request::write()));

    assert_eq!(assert_ready_ok!(call.poll()), 1);
}
