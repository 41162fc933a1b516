//! What is left of a call that did not come to its end.

use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use steadfast_classify::{Failure, Source};
use steadfast_fallback::{Chain, FallbackLayer, Memory, Settings, Store as _};
use tokio::time::timeout;
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer as _, Service as _, service_fn};
use tower_test::mock;

use crate::support::{Ask, Page, SlowStore, ask, call, chain, down, memory, next, page, seconds};

#[tokio::test(start_paused = true)]
async fn trap_p5_a_dropped_write_counts_as_one_that_ran() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut read = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("old"));
    assert_ready!(read.poll()).unwrap();

    let mut write = call(&mut service, Ask::write());
    assert_pending!(write.poll());
    drop(write);

    let mut failing = call(&mut service, Ask::read("a"));
    let _write = next(&mut handle).await;
    next(&mut handle).await.send_error(down());
    let answer = assert_ready!(failing.poll()).unwrap();
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn a_write_dropped_before_its_first_poll_counts_as_one_that_ran() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, _handle) = mock::spawn_layer(layer);
    let before = generation(service.get_ref().policy());

    drop(call(&mut service, Ask::write()));

    assert_eq!(generation(service.get_ref().policy()), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_counted_once_however_it_ends() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);

    let mut write = call(&mut service, Ask::write());
    next(&mut handle).await.send_response(page("stored"));
    assert_ready!(write.poll()).unwrap();
    assert_eq!(generation(service.get_ref().policy()), 1);
    drop(write);

    assert_eq!(generation(service.get_ref().policy()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_read_leaves_what_is_kept_alone() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut read = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("good"));
    assert_ready!(read.poll()).unwrap();

    let mut dropped = call(&mut service, Ask::read("a"));
    assert_pending!(dropped.poll());
    drop(dropped);

    let mut failing = call(&mut service, Ask::read("a"));
    let _dropped = next(&mut handle).await;
    next(&mut handle).await.send_error(down());
    let answer = assert_ready!(failing.poll()).unwrap();
    assert_eq!(answer.value.text, "good");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_drops_the_inner_call() {
    let held = Arc::new(());
    let inner = {
        let held = Arc::clone(&held);
        service_fn(move |_: Ask| {
            let held = Arc::clone(&held);
            async move {
                let _held = held;
                pending::<Result<Page, Failure>>().await
            }
        })
    };
    let mut service = FallbackLayer::new(chain(Settings::new())).layer(inner);
    let before = Arc::strong_count(&held);
    let mut response = task::spawn(service.call(Ask::read("a")));
    assert_pending!(response.poll());
    assert_eq!(Arc::strong_count(&held), before + 1);

    drop(response);

    assert_eq!(Arc::strong_count(&held), before);
}

/// A call that never ends and notes the generation in which it was dropped.
struct Endless(Chain<Memory<Page>>, Arc<AtomicU64>);

impl Future for Endless {
    type Output = Result<Page, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.1.store(generation(&self.0), Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_write_is_over_before_anything_counts_as_read_after_it() {
    let chain = chain(Settings::new());
    let dropped_in = Arc::new(AtomicU64::new(u64::MAX));
    let inner = {
        let (chain, dropped_in) = (chain.clone(), Arc::clone(&dropped_in));
        service_fn(move |_: Ask| Endless(chain.clone(), Arc::clone(&dropped_in)))
    };
    let mut service = FallbackLayer::new(chain.clone()).layer(inner);

    drop(service.call(Ask::write()));

    assert_eq!(dropped_in.load(Ordering::SeqCst), 0);
    assert_eq!(generation(&chain), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_recovery_drops_its_lookup() {
    let store = SlowStore::default();
    let layer = FallbackLayer::new(Chain::new(Settings::new(), store.clone()).unwrap());
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut read = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());
    let (_, lookup) = store.waiting.lock().unwrap().remove(0);
    assert!(!lookup.is_closed());

    drop(read);

    assert!(lookup.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_call_counts_as_a_write_that_ran_and_stays_a_panic() {
    let chain = chain(Settings::new());
    let inner = service_fn(|_: Ask| -> std::future::Ready<Result<Page, Failure>> {
        panic!("the inner service")
    });
    let mut service = FallbackLayer::new(chain.clone()).layer(inner);

    let panicked = catch_unwind(AssertUnwindSafe(|| service.call(Ask::write())));

    assert!(panicked.is_err());
    assert_eq!(generation(&chain), 1);
}

#[tokio::test(start_paused = true)]
async fn trap_p11_a_panic_in_the_call_is_not_answered_by_something_else() {
    let chain = chain(Settings::new());
    let inner = service_fn(|_: Ask| async {
        if std::hint::black_box(true) {
            panic!("the inner call");
        }
        Ok::<Page, Failure>(page("never"))
    });
    let mut service = FallbackLayer::new(chain.clone()).layer(inner);
    let call = tokio::spawn(async move { ask(&mut service, Ask::write().or("default")).await });

    let panicked = timeout(seconds(1), call).await.unwrap().unwrap_err();

    assert!(panicked.is_panic());
    assert_eq!(generation(&chain), 1);
}

fn generation<M>(chain: &Chain<Memory<Page>, M>) -> u64 {
    chain.store().generation("library")
}

#[tokio::test(start_paused = true)]
async fn a_clone_of_the_chain_is_the_same_store() {
    let chain = Chain::new(Settings::new(), memory()).unwrap();

    chain.clone().store().raise("library");

    assert_eq!(generation(&chain), 1);
}
