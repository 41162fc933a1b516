//! Nobody shuts the server down: its handle is dropped.

use std::{future::pending, thread, time::Duration};

use steadfast_pool::process::{Exit, Grace, Process};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

use super::support::{Stage, until, zombies};

/// Four processes that only SIGKILL ends, one of them outside the group.
const STUBBORN: &str = "trap '' TERM; setsid $HANG & $HANG & $HANG & cat; exec $HANG";

#[tokio::test]
async fn i03_a_dropped_process_is_killed_with_all_its_tree_process() {
    let stage = Stage::enter().await;
    let server = stage.start_tree(STUBBORN, 1, 3).await;

    drop(server);

    assert!(stage.gone().await, "{:?}", stage.alive());
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[test]
fn i03_a_process_dropped_outside_any_runtime_is_killed_process() {
    let stage = Stage::enter_blocking();
    let runtime = runtime();
    let server = runtime.block_on(stage.start_tree(STUBBORN, 1, 3));

    let dropped = thread::spawn(move || drop(server)).join();

    assert!(dropped.is_ok());
    assert!(runtime.block_on(stage.gone()), "{:?}", stage.alive());
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[test]
fn i03_a_process_that_outlives_its_runtime_is_killed_when_dropped_process() {
    let stage = Stage::enter_blocking();
    let first = runtime();
    let server = first.block_on(stage.start_tree(STUBBORN, 1, 3));
    drop(first);

    let again = runtime();
    let process = &server.process;
    let waits = async { timeout(Duration::from_millis(100), process.exited()).await };
    assert!(again.block_on(waits).is_err());
    drop(server);

    assert!(again.block_on(stage.gone()), "{:?}", stage.alive());
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[test]
fn i03_the_shutdown_of_a_runtime_kills_what_its_tasks_own_process() {
    let stage = Stage::enter_blocking();
    let dying = runtime();
    let server = dying.block_on(stage.start_tree(STUBBORN, 1, 3));
    dying.spawn(async move {
        let _server = server;
        pending::<()>().await;
    });

    drop(dying);

    assert!(runtime().block_on(stage.gone()), "{:?}", stage.alive());
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[test]
fn a_process_that_outlived_its_runtime_can_still_be_shut_down() {
    let stage = Stage::enter_blocking();
    let first = runtime();
    let server = first.block_on(stage.start_tree("$HANG & cat", 1, 1));
    drop(first);

    drop(server.stdin);
    let end = runtime().block_on(async { server.process.shutdown(Grace::default()).await });

    assert_eq!(end.exit, Some(Exit::Code(0)));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[tokio::test]
async fn a_shutdown_dropped_in_any_step_still_kills() {
    let stage = Stage::enter().await;
    let step = Duration::from_millis(100);
    for millis in [0, 1, 50, 150, 250] {
        let server = stage.start_tree(STUBBORN, 1, 3).await;
        let shutdown = server.process.shutdown(Grace::new(step, step, step));

        let cut = timeout(Duration::from_millis(millis), shutdown).await;

        assert!(millis > 150 || cut.is_err(), "{millis}: {cut:?}");
        assert!(stage.gone().await, "{millis}: {:?}", stage.alive());
        assert!(zombies().is_empty(), "{millis}: {:?}", zombies());
    }
}

#[tokio::test]
async fn a_killed_process_is_still_a_handle_that_says_how_it_ended() {
    let stage = Stage::enter().await;
    let mut server = stage
        .start_tree("echo last words >&2; exec $HANG", 0, 1)
        .await;
    assert!(until(|| !server.process.stderr_tail().is_empty()).await);

    let sweep = server.process.kill_now();

    assert!(sweep.is_complete(), "{sweep:?}");
    assert_eq!(server.process.try_exited(), Some(Exit::Signal(9)));
    assert_eq!(server.process.exited().await, Exit::Signal(9));
    assert_eq!(server.process.stderr_tail(), "last words");
    assert_eq!(server.process.kill_now(), sweep);
    let end = server.process.shutdown(Grace::default()).await;
    assert_eq!((end.exit, end.survivors), (Some(Exit::Signal(9)), Some(0)));
}

#[test]
fn a_process_may_move_between_threads_and_be_watched_from_several() {
    fn assert_send_and_sync<T: Send + Sync + Unpin>() {}

    assert_send_and_sync::<Process>();
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}
