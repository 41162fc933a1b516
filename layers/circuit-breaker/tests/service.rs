//! The contract of a tower service.

mod support;

use std::{
    future::{Future, Ready, pending, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use steadfast_circuit_breaker::{
    Breaker, CircuitBreaker, CircuitBreakerLayer, CircuitOpen, Keyed, ResponseFuture, Settings,
    State, Transitions,
};
use steadfast_classify::{BoxError, Class, Failure};
use support::{Circuit, failure, secs, unbox};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_test::{assert_request_eq, mock, mock::Spawn};

fn layer() -> CircuitBreakerLayer {
    CircuitBreakerLayer::new("server", Settings::new()).expect("settings are valid")
}

#[tokio::test(start_paused = true)]
async fn requests_and_answers_pass_through() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer());

    handle.allow(0);
    assert_pending!(service.poll_ready());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call("ping"));
    assert_pending!(response.poll());
    assert_request_eq!(handle, "ping").send_response("pong");

    assert!(response.is_woken());
    assert_eq!(assert_ready_ok!(response.poll()), "pong");
}

#[tokio::test(start_paused = true)]
async fn errors_pass_through_as_they_are() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());

    let mut response = task::spawn(service.call("ping"));
    assert_request_eq!(handle, "ping").send_error("busy");

    assert_eq!(assert_ready_err!(response.poll()).to_string(), "busy");
}

#[tokio::test(start_paused = true)]
async fn each_call_needs_readiness_of_the_service_underneath() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());

    // The mock panics if the instance that is called is not the one that was ready.
    let _response = service.call("ping");

    assert_request_eq!(handle, "ping").send_response("pong");
    assert_pending!(service.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_not_ready() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer());
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    handle.allow(0);

    let mut clone = Spawn::new(service.get_ref().clone());

    assert_pending!(clone.poll_ready());
    assert_ready_ok!(service.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_is_kept_counted_and_given_back_by_the_next_call() {
    let breaker = Breaker::new("server", Settings::new().with_consecutive_failures(1)).unwrap();
    let layer = CircuitBreakerLayer::from_breaker(breaker.clone());
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer);

    handle.allow(0);
    handle.send_error(failure(Class::NotSent));
    assert_ready_ok!(service.poll_ready());
    assert_ready_ok!(service.poll_ready());
    assert_eq!(breaker.state(), State::Closed);
    let error = unbox(assert_ready_err!(task::spawn(service.call("ping")).poll()));

    assert_eq!(error.class(), Class::NotSent);
    assert!(error.is_circuit_open());
    assert_eq!(breaker.state(), State::Open);
    // It was given back: the next readiness is the service's own again.
    assert_pending!(service.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_readiness_error_comes_back_as_it_is() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(layer());
    handle.allow(0);
    handle.send_error("worker is gone");
    assert_ready_ok!(service.poll_ready());

    // A clone has not got it.
    let mut clone = Spawn::new(service.get_ref().clone());
    assert_pending!(clone.poll_ready());

    let error = assert_ready_err!(task::spawn(service.call("ping")).poll());
    assert_eq!(error.to_string(), "worker is gone");
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_in_an_open_circuit_is_turned_away_like_any_call() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    let mut service = Spawn::new(circuit.service.clone());
    circuit.handle.send_error("worker is gone");
    assert_ready_ok!(service.poll_ready());

    let error = unbox(assert_ready_err!(task::spawn(service.call("ping")).poll()));

    assert_eq!(error.class(), Class::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_ready_holds_no_probe() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let mut idle = Spawn::new(circuit.service.clone());
    circuit.handle.allow(1);
    assert_ready_ok!(idle.poll_ready());
    assert_eq!(circuit.breaker().state(), State::Open);

    let probe = circuit.passes();
    drop(idle);

    probe.answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_turned_away_never_reaches_the_service() {
    let mut circuit = Circuit::opened(Settings::new()).await;

    circuit.rejected();

    assert!(circuit.handle.poll_request().is_pending());
}

/// Panics where it is told to.
#[derive(Clone)]
struct Panics {
    in_call: bool,
}

impl Service<()> for Panics {
    type Response = ();
    type Error = Failure;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        assert!(!self.in_call, "in call");
        Box::pin(async { panic!("in the future") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_gives_its_place_back() {
    for in_call in [true, false] {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;
        let mut panics = Spawn::new(circuit.layer.layer(Panics { in_call }));
        assert_ready_ok!(panics.poll_ready());

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = task::spawn(panics.call(())).poll();
        }));

        assert!(panicked.is_err());
        assert_eq!(circuit.breaker().state(), State::HalfOpen, "{in_call}");
        circuit.passes().answers().await;
        assert_eq!(circuit.breaker().state(), State::Closed, "{in_call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_was_never_polled_gives_its_place_back() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let mut hangs = circuit
        .layer
        .layer(service_fn(|(): ()| pending::<Result<(), Failure>>()));

    let unpolled = hangs.ready().await.unwrap().call(());
    circuit.rejected();
    drop(unpolled);

    circuit.passes();
}

/// Looks, when it is dropped, whether the probe is still out.
struct Looks(Breaker, Arc<AtomicBool>);

impl Drop for Looks {
    fn drop(&mut self) {
        self.1.store(self.0.snapshot().probing, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_is_gone_when_its_place_is_free() {
    let circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let probing = Arc::new(AtomicBool::new(false));
    let looks = Looks(circuit.breaker().clone(), Arc::clone(&probing));
    let looks = Mutex::new(Some(looks));
    let mut hangs = circuit.layer.layer(service_fn(move |(): ()| {
        let looks = looks.lock().unwrap().take();
        async move {
            let _looks = looks;
            pending::<Result<(), Failure>>().await
        }
    }));

    drop(hangs.ready().await.unwrap().call(()));

    assert!(probing.load(Ordering::Relaxed));
    assert!(!circuit.breaker().snapshot().probing);
}

#[tokio::test(start_paused = true)]
async fn services_of_one_layer_and_its_clones_share_the_circuit() {
    let circuit = Circuit::opened(Settings::new()).await;

    for layer in [circuit.layer.clone(), circuit.layer] {
        let service = layer.layer(service_fn(|(): ()| ready(Ok::<_, Failure>(()))));
        let error = service.clone().oneshot(()).await.unwrap_err();
        assert_eq!(error.find_source::<CircuitOpen>().unwrap().name(), "server");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_can_be_switched_off() {
    let on = CircuitBreakerLayer::new("server", Settings::new().with_consecutive_failures(1));
    for (layer, want) in [(None, Class::Unknown), (on.ok(), Class::Rejected)] {
        let layer = CircuitBreakerLayer::optional(layer);
        let mut service = layer.layer(service_fn(|(): ()| {
            ready(Err::<(), _>(failure(Class::Unknown)))
        }));

        service.ready().await.unwrap().call(()).await.unwrap_err();
        let second = service.ready().await.unwrap().call(()).await.unwrap_err();

        assert_eq!(second.class(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn the_layer_needs_no_type_of_request_response_or_error() {
    let stack = tower::ServiceBuilder::new().layer(layer());
    let service = stack.service(service_fn(|n: u32| async move { Ok::<_, BoxError>(n + 1) }));

    assert_eq!(service.oneshot(1).await.unwrap(), 2);
}

#[test]
fn everything_may_move_between_threads() {
    fn check<T: Send + Sync + Unpin>() {}
    check::<CircuitBreaker<()>>();
    check::<CircuitBreakerLayer>();
    check::<CircuitBreakerLayer<Option<Keyed<String, fn(&str) -> String>>>>();
    check::<ResponseFuture<Ready<Result<(), Failure>>, Failure>>();
    check::<Breaker>();
    check::<Transitions>();
    check::<CircuitOpen>();
    check::<Settings>();
}
