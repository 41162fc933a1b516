//! Runtimes that end before they did what they were given.

use futures::FutureExt as _;
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use crate::support::{call, pool, secs, server};

fn runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}

#[test]
fn start_that_its_runtime_never_ran_leaves_the_server_usable() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let config = server("a");
    // Polled once: its task is spawned, and ends with the runtime before its first step.
    let first = runtime();
    let looked = first.block_on(async { session.acquire(&config).now_or_never() });
    assert!(looked.is_none(), "it has to wait");
    drop(first);
    assert_eq!(world.starts("a").len(), 0, "it never began");

    runtime().block_on(async {
        let lease = session.acquire(&config).await.expect("it starts");
        call(&lease).await.expect("it works");
    });
    world.check();
}

#[test]
fn start_in_a_runtime_that_has_ended_fails_and_leaves_the_server_usable() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let config = server("a");
    let ended = runtime().handle().clone();

    let entered = ended.enter();
    let failed = session.acquire(&config).now_or_never();
    failed
        .expect("it ends at once")
        .expect_err("nothing runs there");
    drop(entered);

    runtime().block_on(async {
        let lease = session.acquire(&config).await.expect("it starts");
        call(&lease).await.expect("it works");
    });
    world.check();
}

#[test]
fn drain_that_its_runtime_never_ran_is_taken_over_by_who_asks_next() {
    let (pool, _world) = pool();
    let first = runtime();
    let looked = first.block_on(async { pool.drain_all(secs(1)).now_or_never() });
    assert!(looked.is_none(), "it has to wait");
    drop(first);

    runtime().block_on(async {
        let drained = timeout(secs(60), pool.drain_all(secs(1))).await;
        drained.expect("it ends");
    });
}

#[test]
fn drain_in_a_runtime_that_has_ended_ends_too() {
    let (pool, _world) = pool();
    let ended = runtime().handle().clone();
    let _entered = ended.enter();
    let drained = pool.drain_all(secs(1)).now_or_never();
    assert!(drained.is_some(), "it ends");
}

#[test]
fn questions_outside_a_runtime_fail_and_do_not_panic() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let within = runtime();
    let lease = within
        .block_on(session.acquire(&server("a")))
        .expect("it starts");

    let params = rmcp::model::GetPromptRequestParams::new("p");
    let asked = lease.get_prompt(params).now_or_never();
    asked
        .expect("it ends at once")
        .expect_err("nothing runs here");
}
