//! A store that takes its time.

use std::time::Duration;

use steadfast_classify::Source;
use steadfast_fallback::{Chain, FallbackLayer, Kept, Settings};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready};
use tower_test::mock;

use crate::support::{Ask, Mocked, Page, SlowStore, call, chain, down, next, page, seconds};

const JUST: Duration = Duration::from_millis(1);

type Service = Mocked<Chain<SlowStore>>;

fn slow(settings: Settings) -> (SlowStore, Service, mock::Handle<Ask, Page>) {
    let store = SlowStore::default();
    let layer = FallbackLayer::new(Chain::new(settings, store.clone()).unwrap());
    let (service, handle) = mock::spawn_layer(layer);
    (store, service, handle)
}

fn ending_in(limit: Duration) -> Ask {
    let mut ask = Ask::read("a").or("default");
    ask.context.cap_deadline(Instant::now() + limit);
    ask
}

#[tokio::test(start_paused = true)]
async fn a_store_is_waited_for_up_to_its_limit() {
    let (_store, mut service, mut handle) = slow(Settings::new());
    let mut read = call(&mut service, Ask::read("a").or("default"));
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());

    advance(seconds(1) - JUST).await;
    assert_pending!(read.poll());
    advance(JUST).await;

    assert!(read.is_woken());
    let answer = assert_ready!(read.poll()).unwrap();
    assert_eq!(answer.value.text, "default");
}

#[tokio::test(start_paused = true)]
async fn what_the_store_finds_in_time_is_given() {
    let (store, mut service, mut handle) = slow(Settings::new());
    let mut read = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());
    advance(seconds(1) - JUST).await;

    let (_, lookup) = store.waiting.lock().unwrap().remove(0);
    lookup.send(Kept::new(page("good"), seconds(9))).unwrap();

    assert!(read.is_woken());
    let answer = assert_ready!(read.poll()).unwrap();
    assert_eq!(answer.source, Source::Cache { age: seconds(9) });
}

#[tokio::test(start_paused = true)]
async fn the_age_a_store_tells_is_held_to_the_same_bound() {
    for (age, want) in [
        (seconds(600), Source::Cache { age: seconds(600) }),
        (seconds(600) + JUST, Source::Degraded),
    ] {
        let (store, mut service, mut handle) = slow(Settings::new());
        let mut read = call(&mut service, Ask::read("a"));
        next(&mut handle).await.send_error(down());
        assert_pending!(read.poll());

        let (_, lookup) = store.waiting.lock().unwrap().remove(0);
        lookup.send(Kept::new(page("good"), age)).unwrap();

        assert_eq!(assert_ready!(read.poll()).unwrap().source, want, "{age:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_finds_nothing_leads_on_at_once() {
    let (store, mut service, mut handle) = slow(Settings::new());
    let mut read = call(&mut service, Ask::read("a").or("default"));
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());

    store.waiting.lock().unwrap().clear();

    assert_eq!(assert_ready!(read.poll()).unwrap().value.text, "default");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_ends_the_wait_for_a_store() {
    let (_store, mut service, mut handle) = slow(Settings::new());
    let mut read = call(&mut service, ending_in(seconds(5)));
    advance(seconds(5) - 2 * JUST).await;
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());

    advance(JUST).await;
    assert_pending!(read.poll());
    advance(JUST).await;

    let answer = assert_ready!(read.poll()).unwrap();
    assert_eq!(answer.value.text, "default");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_lengthen_the_limit() {
    let (_store, mut service, mut handle) = slow(Settings::new());
    let mut read = call(&mut service, ending_in(seconds(60)));
    next(&mut handle).await.send_error(down());
    assert_pending!(read.poll());

    advance(seconds(1)).await;

    assert_ready!(read.poll()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_the_deadline_a_store_that_waits_is_not_waited_for() {
    let (_store, mut service, mut handle) = slow(Settings::new());
    let read = call(&mut service, ending_in(seconds(5)));
    advance(seconds(6)).await;
    next(&mut handle).await.send_error(down());
    let begun = Instant::now();

    // A timer that is over may still need a turn of the clock to say so.
    let answer = read.await.unwrap();

    assert!(begun.elapsed() <= JUST, "{:?}", begun.elapsed());
    assert_eq!(answer.value.text, "default");
}

#[tokio::test(start_paused = true)]
async fn after_the_deadline_a_store_in_memory_still_answers() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut good = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("good"));
    assert_ready!(good.poll()).unwrap();

    let mut read = call(&mut service, ending_in(seconds(5)));
    advance(seconds(6)).await;
    next(&mut handle).await.send_error(down());

    let answer = assert_ready!(read.poll()).unwrap();
    assert_eq!(answer.value.text, "good");
}
