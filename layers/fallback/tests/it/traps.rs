//! What goes wrong in other libraries.

use std::{
    future::{Ready, pending, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use steadfast_classify::{Class, Classified, Failure, Origin, Source};
use steadfast_fallback::{Chain, FallbackLayer, Kept, Settings};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{BoxError, Layer as _, Service, service_fn};
use tower_test::mock;

use crate::support::{
    Ask, Page, Script, SlowStore, ask, call, chain, down, next, page, seconds, standard,
};

#[tokio::test(start_paused = true)]
async fn trap_p8_age_is_measured_by_the_clock_that_can_be_paused() {
    let (script, mut service) = standard();
    script.answers(Ok(page("good"))).answers(Err(down()));
    ask(&mut service, Ask::read("a")).await.unwrap();

    advance(Duration::from_secs(24 * 3600)).await;

    let answer = ask(&mut service, Ask::read("a")).await.unwrap();
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn trap_p9_nothing_of_the_failed_call_is_held_while_a_store_is_asked() {
    let held = Arc::new(());
    let store = SlowStore::default();
    let layer = FallbackLayer::new(Chain::new(Settings::new(), store).unwrap());
    let inner = {
        let held = Arc::clone(&held);
        service_fn(move |_: Ask| Failing(Some(Arc::clone(&held))))
    };
    let mut service = layer.layer(inner);
    let before = Arc::strong_count(&held);

    let mut response = task::spawn(service.call(Ask::read("a")));
    assert_eq!(Arc::strong_count(&held), before + 1);
    assert_pending!(response.poll());

    assert_eq!(Arc::strong_count(&held), before);
}

/// Fails, and holds on to its socket until it is dropped.
struct Failing(Option<Arc<()>>);

impl Future for Failing {
    type Output = Result<Page, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(self.0.is_some());
        Poll::Ready(Err(down()))
    }
}

#[tokio::test(start_paused = true)]
async fn trap_p10_a_readiness_error_falls_back() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut good = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("good"));
    assert_ready!(good.poll()).unwrap();

    handle.send_error("the connection is gone");
    let mut refused = call(&mut service, Ask::read("a"));

    let answer = assert_ready!(refused.poll()).unwrap();
    assert_eq!(answer.value.text, "good");
    let cause = answer.cause.unwrap();
    assert_eq!(cause.class, Class::NotSent);
    assert!(!cause.may_have_run);
}

#[tokio::test(start_paused = true)]
async fn trap_p12_the_inner_service_is_called_in_call() {
    let (mut service, mut handle) = mock::spawn_layer(FallbackLayer::new(chain(Settings::new())));

    let _unpolled = call(&mut service, Ask::read("a"));

    let mut request = task::spawn(handle.next_request());
    assert_ready!(request.poll()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn trap_p15_the_cause_names_the_server_and_what_was_called() {
    let (script, mut service) = standard();
    let origin = Origin::server("library").with_operation("fetch");
    script.answers(Err(down().with_origin(&origin)));

    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    let message = answer.cause.unwrap().message;
    assert!(
        message.contains("library") && message.contains("fetch"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn trap_p16_every_service_of_a_layer_has_the_same_store() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let script = Script::default();
    script
        .answers(Ok(page("good")))
        .answers(Err(down()))
        .answers(Err(down()));
    let mut first = layer.layer(script.clone());
    ask(&mut first, Ask::read("a")).await.unwrap();

    let layered = ask(&mut layer.clone().layer(script), Ask::read("a")).await;
    let cloned = ask(&mut first.clone(), Ask::read("a")).await;

    assert_eq!(layered.unwrap().value.text, "good");
    assert_eq!(cloned.unwrap().value.text, "good");
}

/// An application's error that is no failure.
#[derive(Debug)]
struct NoSuchOrder;

impl From<Failure> for NoSuchOrder {
    fn from(_: Failure) -> Self {
        unreachable!("no layer makes one here")
    }
}

impl Classified for NoSuchOrder {
    fn failure(&self) -> Option<&Failure> {
        None
    }
}

/// Fails, when it is made ready or when it is called.
struct Shop {
    open: bool,
}

impl Service<Ask> for Shop {
    type Response = Page;
    type Error = NoSuchOrder;
    type Future = Ready<Result<Page, NoSuchOrder>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoSuchOrder>> {
        Poll::Ready(self.open.then_some(()).ok_or(NoSuchOrder))
    }

    fn call(&mut self, _: Ask) -> Self::Future {
        ready(Err(NoSuchOrder))
    }
}

#[tokio::test(start_paused = true)]
async fn trap_t6_the_error_keeps_its_type() {
    let layer = FallbackLayer::new(|_: &Failure| None::<Page>);

    for open in [true, false] {
        let failed = ask(&mut layer.layer(Shop { open }), Ask::read("a")).await;

        assert!(matches!(failed, Err(NoSuchOrder)), "open: {open}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_tr_fallback_service_268_one_hanging_lookup_blocks_no_other() {
    let store = SlowStore::default();
    let layer = FallbackLayer::new(Chain::new(Settings::new(), store.clone()).unwrap());
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut hanging = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_error(down());
    assert_pending!(hanging.poll());

    let mut other = call(&mut service, Ask::read("b"));
    next(&mut handle).await.send_error(down());
    assert_pending!(other.poll());
    let (asked, lookup) = store.waiting.lock().unwrap().remove(1);
    assert_eq!(asked, "b");
    lookup.send(Kept::new(page("b"), seconds(1))).unwrap();

    assert_eq!(assert_ready!(other.poll()).unwrap().value.text, "b");
    assert_pending!(hanging.poll());
}

#[tokio::test(start_paused = true)]
async fn trap_tr_fallback_service_268_a_call_that_hangs_blocks_no_other() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let inner = service_fn(|ask: Ask| async move {
        if ask.arguments == "a" {
            pending::<()>().await;
        }
        Err::<Page, BoxError>(down().into())
    });
    let mut service = layer.layer(inner);
    let mut hanging = task::spawn(service.call(Ask::read("a")));
    assert_pending!(hanging.poll());

    let mut other = task::spawn(service.call(Ask::read("b")));

    let answer = assert_ready!(other.poll()).unwrap();
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn trap_seed_an_empty_answer_that_was_kept_is_an_answer() {
    let (script, mut service) = standard();
    script.answers(Ok(page(""))).answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    let answer = ask(&mut service, Ask::read("a").or("default"))
        .await
        .unwrap();

    assert_eq!(answer.value.text, "");
    assert_eq!(answer.source, Source::Cache { age: seconds(0) });
}
