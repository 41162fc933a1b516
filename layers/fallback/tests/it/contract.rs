//! The contract of a tower service.

use std::{
    future::{Pending, pending},
    task::{Context, Poll},
};

use steadfast_classify::{Class, Failure, Source};
use steadfast_fallback::{Chain, ChainTicket, Fallback, FallbackLayer, Memory, Settings, Tagged};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{BoxError, Layer as _, Service, limit::ConcurrencyLimit};
use tower_test::{assert_request_eq, mock};

use crate::support::{Ask, Page, Script, call, chain, down, next, page};

/// Gives nothing in place of a failure.
fn nothing(_: &Failure) -> Option<&'static str> {
    None
}

#[tokio::test(start_paused = true)]
async fn a_request_and_its_answer_pass_through() {
    let (mut service, mut handle) = mock::spawn_layer(FallbackLayer::new(nothing));
    assert_ready!(service.poll_ready::<&str>()).unwrap();
    let mut response = task::spawn(service.call("ping"));
    assert_pending!(response.poll());

    assert_request_eq!(handle, "ping").send_response("pong");

    let answer = assert_ready!(response.poll()).unwrap();
    assert_eq!(answer.value, "pong");
    assert_eq!(answer.source, Source::Live);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_nothing_replaces_is_returned_as_it_is() {
    let (mut service, mut handle) = mock::spawn_layer(FallbackLayer::new(nothing));
    assert_ready!(service.poll_ready::<&str>()).unwrap();
    let mut response = task::spawn(service.call("ping"));

    assert_request_eq!(handle, "ping").send_error(std::fmt::Error);

    let error: BoxError = assert_ready!(response.poll()).unwrap_err();
    assert!(error.is::<std::fmt::Error>());
}

#[tokio::test(start_paused = true)]
async fn readiness_is_the_inner_services() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(FallbackLayer::new(nothing));
    handle.allow(0);
    assert_pending!(service.poll_ready());

    handle.allow(1);

    assert!(service.is_woken());
    assert_ready!(service.poll_ready()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_is_the_result_of_the_next_call_only() {
    let (mut service, mut handle) = mock::spawn_layer(FallbackLayer::new(nothing));
    handle.send_error(std::fmt::Error);
    assert_ready!(service.poll_ready::<&str>()).unwrap();
    // Ready until it is called, whatever the inner service says meanwhile.
    handle.allow(0);
    assert_ready!(service.poll_ready::<&str>()).unwrap();

    let mut refused = task::spawn(service.call("ping"));

    let error: BoxError = assert_ready!(refused.poll()).unwrap_err();
    assert!(error.is::<std::fmt::Error>());
    handle.allow(1);
    assert_ready!(service.poll_ready::<&str>()).unwrap();
    let mut response = task::spawn(service.call("again"));
    assert_request_eq!(handle, "again").send_response("pong");
    assert_eq!(assert_ready!(response.poll()).unwrap().value, "pong");
}

#[tokio::test(start_paused = true)]
async fn a_clone_has_no_part_in_a_readiness_error() {
    let (mut service, mut handle) = mock::spawn_layer::<&str, &str, _>(FallbackLayer::new(nothing));
    handle.send_error(std::fmt::Error);
    assert_ready!(service.poll_ready()).unwrap();
    handle.allow(0);

    let mut clone = service.clone();

    assert_pending!(clone.poll_ready());
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_not_ready_because_the_original_is() {
    let mut ready = one_at_a_time();
    assert_ready!(ready.poll_ready::<Ask>()).unwrap();

    let mut clone = ready.clone();

    assert_pending!(clone.poll_ready::<Ask>());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_ready_service_holds_nothing() {
    let mut ready = one_at_a_time();
    let mut other = ready.clone();
    assert_ready!(ready.poll_ready::<Ask>()).unwrap();
    assert_pending!(other.poll_ready::<Ask>());

    drop(ready);

    assert!(other.is_woken());
    assert_ready!(other.poll_ready::<Ask>()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn made_ready_for_one_request_type_and_called_with_another_it_errs() {
    /// Not ready for either of its request types, each with an error of its own.
    struct Two;

    impl Service<u8> for Two {
        type Response = Page;
        type Error = BoxError;
        type Future = Pending<Result<Page, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Err("busy".into()))
        }

        fn call(&mut self, _: u8) -> Self::Future {
            pending()
        }
    }

    impl Service<u16> for Two {
        type Response = Page;
        type Error = Failure;
        type Future = Pending<Result<Page, Failure>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: u16) -> Self::Future {
            pending()
        }
    }

    let layer = FallbackLayer::new(|_: &Failure| None::<Page>);
    let mut service = mock::Spawn::new(layer.layer(Two));
    assert_ready!(service.poll_ready::<u8>()).unwrap();

    let mut response = task::spawn(service.call(1_u16));

    let failure = assert_ready!(response.poll()).unwrap_err();
    assert_eq!(failure.class(), Class::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_readiness_error_makes_nothing_stale_whatever_it_says() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut read = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("good"));
    assert_ready!(read.poll()).unwrap();
    handle.send_error(Failure::new(Class::Unknown));

    let mut write = call(&mut service, Ask::write());
    let refused = assert_ready!(write.poll()).unwrap();

    assert!(!refused.cause.unwrap().may_have_run);
    handle.allow(1);
    let mut failing = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_error(down());
    let answer = assert_ready!(failing.poll()).unwrap();
    assert_eq!(answer.value.text, "good");
}

#[test]
fn everything_is_send_sync_and_unpin_where_the_inner_parts_are() {
    fn check<T: Send + Sync + Unpin>() {}

    check::<Fallback<Script, Chain<Memory<Page>>>>();
    check::<FallbackLayer<Chain<Memory<Page>>>>();
    check::<ChainTicket<Memory<Page>, Tagged>>();

    fn check_future<T: Send + Sync>(_: T) {}

    let script = Script::default();
    script.answers(Err(down()));
    let mut service = FallbackLayer::new(chain(Settings::new())).layer(script);
    check_future(service.call(Ask::read("a")));
}

/// A service that takes its only permit when it is made ready.
fn one_at_a_time() -> mock::Spawn<Fallback<ConcurrencyLimit<Script>, Chain<Memory<Page>>>> {
    let inner = ConcurrencyLimit::new(Script::default(), 1);
    mock::Spawn::new(FallbackLayer::new(chain(Settings::new())).layer(inner))
}
