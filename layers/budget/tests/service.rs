//! The service contract, with and without waiting.

mod support;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};

use steadfast_budget::{Budget, BudgetLayer, Global, Keyed, ResponseFuture, Then};
use steadfast_classify::Failure;
use support::{Request, Reserving, failure, global, limit, make_ready, over, send};
use tokio::time;
use tokio_test::{assert_pending, assert_ready, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, service_fn};
use tower_test::{assert_request_eq, mock};

type Mock = mock::Mock<TestCall, &'static str>;

/// A request that a mock can compare, and that says nothing about itself.
#[derive(Debug, PartialEq, Eq)]
struct TestCall(&'static str);
impl steadfast_classify::Call for TestCall {}

#[tokio::test(start_paused = true)]
async fn passes_requests_and_responses_through() {
    for wait in [0, 1_000] {
        let (mut service, mut handle) = spawn("10/s", wait);

        assert_ready_ok!(service.poll_ready());
        let mut response = task::spawn(service.call(TestCall("ping")));
        let _ = response.poll();
        assert_request_eq!(handle, TestCall("ping")).send_response("pong");

        assert_eq!(response.await.unwrap(), "pong", "max_wait {wait} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn passes_errors_through_untouched() {
    for wait in [0, 1_000] {
        let (mut service, mut handle) = spawn("10/s", wait);

        assert_ready_ok!(service.poll_ready());
        let mut response = task::spawn(service.call(TestCall("ping")));
        let _ = response.poll();
        assert_request_eq!(handle, TestCall("ping")).send_error("busy");

        let error = response.await.unwrap_err();
        assert_eq!(error.to_string(), "busy", "max_wait {wait} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_it_is_ready_when_its_inner_service_is() {
    let (mut service, mut handle) = spawn("10/s", 0);

    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_a_readiness_error_is_passed_on() {
    let (mut service, mut handle) = spawn("10/s", 0);

    handle.send_error("gone");
    let error = assert_ready_err!(service.poll_ready());
    assert_eq!(error.to_string(), "gone");
}

#[tokio::test(start_paused = true)]
async fn with_a_wait_readiness_is_driven_in_the_call() {
    let (mut service, mut handle) = spawn("10/s", 1_000);

    handle.allow(0);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(TestCall("ping")));
    assert_pending!(response.poll());
    handle.allow(1);
    assert!(response.is_woken());
    assert_pending!(response.poll());

    assert_request_eq!(handle, TestCall("ping")).send_response("pong");
    assert_eq!(response.await.unwrap(), "pong");
}

#[tokio::test(start_paused = true)]
async fn with_a_wait_a_readiness_error_is_the_error_of_the_call() {
    let (mut service, mut handle) = spawn("10/s", 1_000);

    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(TestCall("ping")));
    handle.send_error("gone");

    let error = assert_ready_err!(response.poll());
    assert_eq!(error.to_string(), "gone");
}

#[tokio::test(start_paused = true)]
async fn pending_readiness_costs_nothing() {
    let (mut service, mut handle) = spawn("1/h", 0);
    handle.allow(0);
    for _ in 0..10 {
        assert_pending!(service.poll_ready());
    }

    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(TestCall("ping")));
    assert_pending!(response.poll());

    assert_request_eq!(handle, TestCall("ping")).send_response("pong");
    assert_eq!(response.await.unwrap(), "pong");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_never_reaches_the_inner_service() {
    for wait in [0, 1_000] {
        let inner = Reserving::new();
        let mut service =
            Budget::new(inner.clone(), global("1/h")).with_max_wait(Duration::from_millis(wait));

        send(&mut service, Request::of(1)).await.unwrap();
        let failure = send(&mut service, Request::of(1)).await.unwrap_err();

        assert_eq!(over(&failure).limit(), "all");
        assert_eq!(failure.retry_in(), Some(Duration::from_secs(3_600)));
        assert_eq!(failure.origin().layer, Some("budget"));
        assert_eq!(failure.attempts(), 0);
        assert_eq!(inner.called.load(Ordering::SeqCst), 1, "max_wait {wait} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_call_lets_go_of_the_readiness() {
    let inner = Reserving::new();
    let mut service = Budget::new(inner.clone(), global("1/h"));
    send(&mut service, Request::of(1)).await.unwrap();

    make_ready(&mut service).await;
    assert_eq!(inner.reserved(), 1);
    let response = service.call(Request::of(1));

    // Even before its future is polled.
    assert_eq!(inner.reserved(), 0);
    response.await.unwrap_err();
    make_ready(&mut service).await;
    assert_eq!(inner.reserved(), 1, "and it can be made ready again");
}

#[tokio::test(start_paused = true)]
async fn clones_and_drops_hold_no_readiness() {
    let inner = Reserving::new();
    let mut service = Budget::new(inner.clone(), global("10/s"));

    make_ready(&mut service).await;
    let clone = service.clone();
    assert_eq!(inner.reserved(), 1, "the clone has reserved nothing");
    drop(service);
    assert_eq!(inner.reserved(), 0);
    drop(clone);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_inner_service_leaves_the_budget_usable() {
    for wait in [0, 1_000] {
        let inner = service_fn(|request: Request| async move {
            assert_ne!(request.session, 0, "the inner service panics");
            Ok::<_, Failure>(request.session)
        });
        let mut service = BudgetLayer::new(global("1/s burst 2"))
            .with_max_wait(Duration::from_millis(wait))
            .layer(inner);

        make_ready(&mut service).await;
        let mut response = task::spawn(service.call(Request::of(0)));
        catch_unwind(AssertUnwindSafe(|| response.poll())).unwrap_err();
        drop(response);
        // The call that panicked was admitted: one is left.
        let answer = send(&mut service, Request::of(7)).await;

        assert_eq!(answer.unwrap(), 7, "max_wait {wait} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_takes_its_call_with_it() {
    let (mut service, mut handle) = spawn("1/s", 5_000);
    handle.allow(10);
    let mut first = task::spawn(service.call(TestCall("first")));
    assert_pending!(first.poll());
    let mut second = task::spawn(service.call(TestCall("second")));
    assert_pending!(second.poll());

    drop(second);
    time::advance(Duration::from_secs(10)).await;

    assert_request_eq!(handle, TestCall("first")).send_response("pong");
    assert_pending!(handle.poll_request(), "the dropped call was not made");
    assert_eq!(assert_ready!(first.poll()).unwrap(), "pong");
}

#[tokio::test(start_paused = true)]
async fn says_what_state_it_is_in_and_nothing_of_the_request() {
    let mut service = BudgetLayer::new(global("1/s"))
        .with_max_wait(Duration::from_secs(5))
        .layer(Reserving::new());
    let admitted = service.call(Request::of(987_654_321));
    let waiting = service.call(Request::of(987_654_321));

    assert_eq!(format!("{admitted:?}"), "ResponseFuture(\"Readying\")");
    assert_eq!(format!("{waiting:?}"), "ResponseFuture(\"Waiting\")");
    assert!(!format!("{service:?}").contains("987654321"));
}

#[test]
fn is_send_sync_and_unpin_where_its_parts_are() {
    fn check<T: Send + Sync + Unpin>() {}
    fn check_future<T: Send + Sync>() {}
    type Limits = Then<Keyed<u64, fn(&Request) -> u64>, Global>;

    check::<BudgetLayer<Limits>>();
    check::<Budget<Reserving, Limits>>();
    check::<Option<Limits>>();
    // Not `Unpin`: it holds its timer in place, not in a box.
    check_future::<ResponseFuture<Reserving, Limits, Request>>();
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_one_line_to_act_on() {
    let keyed = Keyed::new(limit("session", "1/min"), |request: &Request| {
        request.session
    });
    let layer = BudgetLayer::new(keyed.with_shown_keys());
    let mut service = layer.layer(Reserving::new());
    send(&mut service, Request::of(7)).await.unwrap();

    let failure = send(&mut service, Request::of(7)).await.unwrap_err();

    let line = "call: rejected before sending: over the limit \"session\" of \"7\"; \
                try again in 60.0s";
    assert_eq!(failure.to_string(), line);
}

#[tokio::test(start_paused = true)]
async fn a_mock_gets_its_rejection_as_a_box_error() {
    let (mut service, mut handle) = spawn("1/h", 0);
    handle.allow(2);
    assert_ready_ok!(service.poll_ready());
    drop(service.call(TestCall("ping")));

    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call(TestCall("ping")));

    let Poll::Ready(Err(error)) = response.poll() else {
        panic!("it is over its limit");
    };
    assert_eq!(over(failure(&error)).limit(), "all");
}

/// A mock behind a budget for all calls.
fn spawn(
    quota: &str,
    max_wait: u64,
) -> (
    mock::Spawn<Budget<Mock, Global>>,
    mock::Handle<TestCall, &'static str>,
) {
    let global = global(quota);
    mock::spawn_with(move |inner| {
        Budget::new(inner, global.clone()).with_max_wait(Duration::from_millis(max_wait))
    })
}
