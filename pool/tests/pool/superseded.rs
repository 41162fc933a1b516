//! Connections that take no new calls, while the last ones on them finish.

use std::sync::Arc;

use steadfast_classify::Class;
use steadfast_pool::Status;
use tokio::time::{sleep, timeout};

use crate::support::{
    FakeLink, MOMENT, World, call, entry, pool, refusal, secs, server, settle, slow, spawn_call,
    status,
};

fn both(world: &World) -> [Arc<FakeLink>; 2] {
    let links = world.links("a");
    links.try_into().expect("one was replaced by another")
}

/// A call of ten seconds on a connection that was superseded after the first.
macro_rules! overtaken {
    ($pool:ident, $world:ident, $lease:ident, $running:ident) => {
        let ($pool, $world) = pool();
        let session = $pool.session("s");
        let $lease = session.acquire(&server("a")).await.expect("it starts");
        let $running = spawn_call(&$lease, slow(&$lease, 10_000));
        sleep(secs(1)).await;
        $world.last("a").expire();
        settle().await;
    };
}

#[tokio::test(start_paused = true)]
async fn e09_a_running_call_finishes_on_the_old_connection_while_others_use_the_new() {
    overtaken!(pool, world, lease, running);
    assert_eq!(status(&pool, "a"), Some(Status::Idle));

    call(&lease).await.expect("on a new connection");

    let [old, new] = both(&world);
    assert_eq!((old.executed(), new.executed()), (1, 1));
    assert_eq!(old.closes(), 0, "a call runs on it");
    running.await.expect("no panic").expect("it is answered");
    settle().await;
    assert_eq!((old.closes(), new.closes()), (1, 0));
    assert_eq!(entry(&pool, "a").in_flight, 0);
    assert_eq!(status(&pool, "a"), Some(Status::Connected));
}

#[tokio::test(start_paused = true)]
async fn connection_that_is_superseded_with_no_call_on_it_is_closed_at_once() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    world.last("a").expire();
    settle().await;

    assert_eq!(world.last("a").closes(), 1);
    call(&lease).await.expect("on a new connection");
    assert_eq!(world.links("a").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn connection_that_is_superseded_again_and_again_is_replaced_after_a_pause() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.last("a").expire();
    settle().await;
    call(&lease).await.expect("the first time at once");

    world.last("a").expire();
    settle().await;

    let failure = call(&lease).await.expect_err("not at once");
    assert_eq!(failure.class(), Class::NotSent);
    assert!(failure.retry_in().is_some(), "{failure}");
    assert_eq!(world.links("a").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_a_call_on_an_old_connection_and_then_cuts_it_off() {
    overtaken!(pool, world, lease, running);
    call(&lease).await.expect("on a new connection");

    let report = pool.drain_all(secs(10)).await;

    let failure = running.await.expect("no panic");
    assert_eq!(refusal(failure), Class::Unknown);
    assert_eq!(report.took.as_secs(), 5, "half of it is for calls");
    let [old, new] = both(&world);
    assert_eq!((old.closes(), new.closes()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn pool_that_is_dropped_kills_old_connections_too() {
    overtaken!(pool, world, lease, running);
    call(&lease).await.expect("on a new connection");
    let [old, _new] = both(&world);

    drop(pool);

    assert!(old.was_killed());
    let failure = timeout(MOMENT, running).await.expect("at once");
    assert_eq!(refusal(failure.expect("no panic")), Class::Unknown);
}
