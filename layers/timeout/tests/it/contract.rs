//! The contract of a tower service.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::FutureExt;
use steadfast_classify::{Class, Failure, Phase};
use steadfast_timeout::{Deadline, DeadlineLayer, Settings, Timeout, TimeoutLayer};
use tokio::time::{Sleep, sleep};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit, service_fn};
use tower_test::{assert_request_eq, mock};

use crate::wire::{Ping, Req, Script, Wire, ms, soon, timeout};

type Mock = mock::Mock<Ping, &'static str>;

#[tokio::test(start_paused = true)]
async fn requests_and_responses_pass_through() {
    let (mut service, mut handle) = limited();

    let mut call = task::spawn(service.call(Ping("ping")));
    assert_pending!(call.poll());
    assert_request_eq!(handle, Ping("ping")).send_response("pong");

    assert_eq!(assert_ready_ok!(call.poll()), "pong");
}

#[tokio::test(start_paused = true)]
async fn errors_pass_through() {
    let (mut service, mut handle) = limited();

    let mut call = task::spawn(service.call(Ping("ping")));
    assert_pending!(call.poll());
    assert_request_eq!(handle, Ping("ping")).send_error("out of paper");

    assert_eq!(assert_ready_err!(call.poll()).to_string(), "out of paper");
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_whatever_the_inner_service_is() {
    let (service, mut handle) = limited();
    handle.allow(0);

    let mut service = mock::Spawn::new(service);

    assert_ready_ok!(service.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_is_made_ready_before_it_is_called() {
    let (mut service, mut handle) = limited();
    handle.allow(0);

    let mut call = task::spawn(service.call(Ping("ping")));
    assert_pending!(call.poll());
    assert_pending!(handle.poll_request());

    handle.allow(1);
    assert!(call.is_woken());
    assert_pending!(call.poll());
    assert_request_eq!(handle, Ping("ping")).send_response("pong");
    assert_eq!(assert_ready_ok!(call.poll()), "pong");
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_is_the_result_of_the_call() {
    let (mut service, mut handle) = limited();
    handle.send_error("broken for good");
    assert!(service.ready().await.is_ok());

    let failed = service.call(Ping("ping")).await;

    assert_eq!(failed.unwrap_err().to_string(), "broken for good");
}

#[tokio::test(start_paused = true)]
async fn a_ready_service_holds_nothing() {
    let limit = ConcurrencyLimit::new(Wire::new(answering()), 1);
    let mut held = mock::Spawn::new(timeout(limit.clone(), Settings::new()));
    assert_ready_ok!(held.poll_ready());

    let other = timeout(limit, Settings::new()).oneshot(Req::default());

    assert_eq!(other.await.unwrap(), "pong");
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_again_however_the_call_ends() {
    let limit = ConcurrencyLimit::new(Wire::new(Script::default()), 1);
    let mut service = timeout(limit.clone(), Settings::new());

    // While its response is pending the slot is taken, and a second call waits for it.
    let mut dropped = task::spawn(service.call(Req::default()));
    assert_pending!(dropped.poll());
    let mut waiting = task::spawn(service.call(Req::default()));
    assert_pending!(waiting.poll());

    // Dropped while it waits for the slot: no place in the queue stays behind.
    drop(waiting);
    // Dropped while its response is pending.
    drop(dropped);
    assert!(is_free(&limit));

    // A limit ran out. The future is still there, what it held is not.
    let mut late = task::spawn(service.call(Req::default()));
    assert_pending!(late.poll());
    tokio::time::advance(ms(60_000)).await;
    assert!(assert_ready!(late.poll()).is_err());
    assert!(is_free(&limit));
    drop(late);

    // The inner future panics.
    let broken = service_fn(|_: Req| async { panic!("bug") as Result<(), Failure> });
    let limit = ConcurrencyLimit::new(broken, 1);
    let call = timeout(limit.clone(), Settings::new()).oneshot(Req::default());
    let panicked = std::panic::AssertUnwindSafe(call).catch_unwind().await;
    assert!(panicked.is_err());
    assert!(is_free(&limit));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_readiness_is_timed() {
    let limit = ConcurrencyLimit::new(Wire::new(Script::default()), 1);
    let mut service = timeout(limit.clone(), Settings::new());
    let mut running = task::spawn(service.call(Req::default()));
    assert_pending!(running.poll());

    let failure = soon(service.call(Req::tracked())).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.phase(), Some(Phase::Connect));
    assert_eq!(failure.elapsed(), Some(ms(5_000)));
}

#[test]
fn services_and_layers_are_send_sync_and_unpin_where_the_inner_one_is() {
    fn all<T: Send + Sync + Unpin>() {}
    fn send_sync<T: Send + Sync>(_: &T) {}

    all::<TimeoutLayer>();
    all::<DeadlineLayer>();
    all::<Timeout<Wire>>();
    all::<Deadline<Wire>>();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _in_runtime = runtime.enter();
    let wire = Wire::new(Script::default());
    send_sync(&timeout(wire.clone(), Settings::new()).call(Req::default()));
    send_sync(&DeadlineLayer::default().layer(wire).call(Req::default()));
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_request_is_in_debug() {
    #[derive(Clone, Debug)]
    struct Secret(#[expect(dead_code, reason = "only `Debug` reads it")] &'static str);
    impl steadfast_classify::Call for Secret {}
    let service = service_fn(|_: Secret| async { Ok::<_, Failure>(()) });

    let timed = timeout(service, Settings::new()).call(Secret("hunter2"));
    let ended = DeadlineLayer::default()
        .layer(service)
        .call(Secret("hunter2"));

    let shown = format!("{timed:?} {ended:?}");
    assert_eq!(shown.matches("waiting").count(), 2, "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

// === helpers ===

/// A service that becomes ready `delay` after it was first asked.
pub(crate) fn ready_after<F>(delay: Duration, call: F) -> ReadyAfter<F> {
    ReadyAfter {
        delay,
        sleep: None,
        call,
    }
}

pub(crate) struct ReadyAfter<F> {
    delay: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    call: F,
}

impl<F: Clone> Clone for ReadyAfter<F> {
    fn clone(&self) -> Self {
        ready_after(self.delay, self.call.clone())
    }
}

impl<F, Fut> Service<Ping> for ReadyAfter<F>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), Failure>>,
{
    type Response = ();
    type Error = Failure;
    type Future = Fut;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let delay = self.delay;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(delay)));
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Ping) -> Fut {
        assert!(self.sleep.take().is_some(), "called before it was ready");
        (self.call)()
    }
}

fn limited() -> (Timeout<Mock>, mock::Handle<Ping, &'static str>) {
    let (mock, handle) = mock::pair();
    (timeout(mock, Settings::new()), handle)
}

fn answering() -> Script {
    Script {
        sent: Some(0),
        answer: Some(1),
        ..Script::default()
    }
}

fn is_free<S: Service<Req> + Clone>(limit: &ConcurrencyLimit<S>) -> bool {
    limit.clone().ready().now_or_never().is_some()
}
