//! The contract of a tower service.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use steadfast_classify::{BoxError, Class, ClassifyLayer, ClassifyService, Failure};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, limit::ConcurrencyLimit, service_fn};
use tower_test::{assert_request_eq, mock};

type Mock = mock::Mock<&'static str, &'static str>;
type Judge = fn(Result<&'static str, BoxError>) -> Result<&'static str, Failure>;

#[tokio::test]
async fn each_call_waits_for_the_service_underneath() {
    let (mut service, mut handle) = classified();

    for (request, answer) in [("ping", "pong"), ("ding", "dong")] {
        handle.allow(0);
        assert_pending!(service.poll_ready());
        handle.allow(1);
        assert_ready_ok!(service.poll_ready());
        let mut call = task::spawn(service.call(request));
        assert_pending!(call.poll());
        assert_request_eq!(handle, request).send_response(answer);
        assert_eq!(assert_ready_ok!(call.poll()), answer);
    }
}

#[tokio::test]
async fn a_clone_is_not_ready_because_its_original_is() {
    let (mut service, mut handle) = classified();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    handle.allow(0);

    let mut clone = service.clone();

    assert_pending!(clone.poll_ready());
    let _call = task::spawn(service.call("ping"));
    assert_request_eq!(handle, "ping");
}

#[tokio::test]
async fn what_a_ready_service_or_a_call_holds_is_free_when_it_is_dropped() {
    let (mock, mut handle) = mock::pair();
    let limited = ConcurrencyLimit::new(mock, 1);
    let mut service = mock::Spawn::new(layer().layer(limited));
    let mut other = service.clone();

    assert_ready_ok!(service.poll_ready());
    assert_pending!(other.poll_ready());
    drop(service);
    assert_ready_ok!(other.poll_ready());

    let mut third = other.clone();
    let mut call = task::spawn(other.call("ping"));
    assert_pending!(call.poll());
    let (_, reply) = handle.next_request().await.unwrap();
    assert_pending!(third.poll_ready());
    drop(call);
    assert_ready_ok!(third.poll_ready());
    drop(reply);
}

#[test]
fn a_panic_stays_a_panic_and_returns_what_was_taken() {
    let held = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&held);
    let panics = service_fn(move |()| {
        let guard = Guard::new(&counted);
        async move {
            let _guard = guard;
            panic!("the service's own");
            #[allow(unreachable_code, reason = "says what it would return")]
            Ok::<(), Failure>(())
        }
    });
    let mut service = ClassifyLayer::new(|result: Result<(), Failure>| result).layer(panics);

    let mut call = task::spawn(service.call(()));
    assert_eq!(held.load(Ordering::Relaxed), 1);
    let ended = catch_unwind(AssertUnwindSafe(|| call.poll()));
    drop(call);

    assert!(ended.is_err());
    assert_eq!(held.load(Ordering::Relaxed), 0);
}

#[test]
fn what_the_inner_service_is_the_classified_one_is_too() {
    fn is<T: Send + Sync + Unpin + Clone>() {}

    is::<ClassifyLayer<Judge>>();
    is::<ClassifyService<(), Judge>>();
}

fn classified() -> (
    mock::Spawn<ClassifyService<Mock, Judge>>,
    mock::Handle<&'static str, &'static str>,
) {
    mock::spawn_with(|mock| layer().layer(mock))
}

fn layer() -> ClassifyLayer<Judge> {
    ClassifyLayer::new(|result| {
        result.map_err(|error| Failure::new(Class::Unknown).with_source(error))
    })
}

/// Counts itself while it is there.
struct Guard(Arc<AtomicUsize>);

impl Guard {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
