//! A server that dies by itself.

use std::time::Duration;

use steadfast_pool::process::{Exit, Grace, Step};
use tokio::{
    io::AsyncReadExt,
    time::{Instant, timeout},
};

use super::support::{Stage, kill, short, zombies};

#[tokio::test]
async fn a_death_is_noticed_within_a_second_while_a_grandchild_holds_stdout() {
    let stage = Stage::enter().await;
    let mut server = stage.start_tree("$HANG & cat", 1, 1).await;

    let killed = Instant::now();
    kill(server.process.pid(), "KILL");
    let exit = timeout(Duration::from_secs(1), server.process.exited()).await;

    assert_eq!(exit.unwrap(), Exit::Signal(9));
    assert!(killed.elapsed() < Duration::from_secs(1));
    // The pipe alone would not have told.
    let read = timeout(Duration::from_millis(50), server.stdout.read_u8()).await;
    assert!(read.is_err(), "{read:?}");
    let end = server.process.shutdown(Grace::default()).await;
    assert_eq!((end.step, end.exit), (Step::Term, Some(Exit::Signal(9))));
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[tokio::test]
async fn every_waiter_learns_of_the_end_and_a_dropped_one_loses_nothing() {
    let stage = Stage::enter().await;
    let server = stage.start("read line; exit 3");
    let process = &server.process;
    assert!(
        timeout(Duration::from_millis(50), process.exited())
            .await
            .is_err()
    );
    assert_eq!(process.try_exited(), None);

    let ends = async { tokio::join!(process.exited(), process.exited()) };
    let close = async { drop(server.stdin) };
    let (ends, ()) = tokio::join!(ends, close);

    assert_eq!(ends, (Exit::Code(3), Exit::Code(3)));
    assert_eq!(process.try_exited(), Some(Exit::Code(3)));
}

#[tokio::test]
async fn a_server_that_ended_alone_needs_nothing() {
    let stage = Stage::enter().await;
    let server = stage.start("exit 0");
    server.process.exited().await;

    let end = server.process.shutdown(Grace::default()).await;

    assert_eq!(
        (end.step, end.exit),
        (Step::AlreadyDead, Some(Exit::Code(0)))
    );
    assert!(end.sweep.is_complete(), "{:?}", end.sweep);
    assert!(end.took < Grace::default().eof, "{:?}", end.took);
    assert!(zombies().is_empty(), "{:?}", zombies());
}

#[tokio::test]
async fn what_left_the_group_of_a_crashed_server_is_told_by_its_mark() {
    let stage = Stage::enter().await;
    let server = stage
        .start_tree(
            "setsid $HANG & (trap '' TERM; exec setsid $HANG) & $HANG & cat",
            1,
            3,
        )
        .await;

    kill(server.process.pid(), "KILL");
    server.process.exited().await;
    let end = server.process.shutdown(short()).await;

    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
    assert_eq!(end.step, Step::Kill);
    assert_eq!((end.sweep.found, end.sweep.signalled), (Some(2), 2));
}
