//! Many servers, one after the other: nothing adds up.

use std::{fs, time::Duration};

use steadfast_pool::process::{Exit, Grace, Step, Watchdog, spawn};
use tokio::time::Instant;

use super::support::{Stage, kill, short, until, zombies};

#[tokio::test]
async fn i04_fifty_servers_killed_from_outside_leave_no_zombie_process() {
    let stage = Stage::enter().await;
    for n in 0..50 {
        let server = stage.start("exec $HANG");
        kill(server.process.pid(), "KILL");
        server.process.exited().await;
        match n % 2 {
            0 => drop(server),
            _ => assert_eq!(
                server.process.shutdown(short()).await.exit,
                Some(Exit::Signal(9))
            ),
        }
        assert!(zombies().is_empty(), "{n}: {:?}", zombies());
    }
    assert!(stage.alive().is_empty(), "{:?}", stage.alive());
}

#[tokio::test]
async fn i12_two_hundred_servers_leave_no_descriptor_open_process() {
    let stage = Stage::enter().await;
    let _first = stage.start("exec $HANG"); // starts the watchdog
    let before = descriptors();
    assert!(before >= 5, "three pipes, a pidfd, the watchdog's pipe");
    for n in 0..200 {
        let server = stage.start("exec $HANG");
        match n % 10 {
            0 => drop(
                server
                    .process
                    .shutdown(Grace::new(
                        Duration::ZERO,
                        Duration::from_secs(1),
                        Duration::from_secs(1),
                    ))
                    .await,
            ),
            _ => drop(server),
        }
    }
    // The tasks that held the pipes end a moment later.
    assert!(
        until(|| descriptors() <= before).await,
        "{before} {}",
        descriptors()
    );
    assert_eq!(stage.alive().len(), 1);
}

#[tokio::test]
async fn a_child_that_holds_stderr_holds_no_descriptor_of_ours() {
    let stage = Stage::enter().await;
    let _first = stage.start("exec $HANG");
    let before = descriptors();
    let server = stage
        .start_tree("env -i setsid $HANG & $HANG & cat", 1, 3)
        .await;
    let tail = server.process.stderr().clone();

    kill(server.process.pid(), "KILL");
    server.process.exited().await;
    server.process.shutdown(Grace::default()).await;
    drop((server.stdin, server.stdout));

    assert!(
        until(|| descriptors() <= before).await,
        "{before} {}",
        descriptors()
    );
    assert_eq!(tail.text(), "");
    // Wiped its environment and lost its parent: nothing proves that it is ours.
    assert_eq!(stage.alive().len(), 2);
}

#[tokio::test]
async fn a_server_that_keeps_starting_what_leaves_the_group_ends_in_bounded_time() {
    let stage = Stage::enter().await;
    let server = stage.start("trap '' TERM; while :; do setsid $HANG & sleep 0.01; done");
    assert!(until(|| stage.alive().len() > 10).await);

    let began = Instant::now();
    let end = server.process.shutdown(short()).await;

    assert_eq!((end.step, end.survivors), (Step::Kill, Some(0)));
    assert!(stage.gone().await, "{:?}", stage.alive());
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn one_watchdog_serves_many_servers_and_ends_with_the_last_of_them() {
    let stage = Stage::enter().await;
    let watchdog = Watchdog::new();
    assert_eq!(watchdog.pid(), None);
    let start = || spawn(&stage.sh("exec $HANG"), &watchdog, 0).unwrap();

    let first = start();
    let pid = watchdog.pid().unwrap();
    let second = start();
    assert_eq!(watchdog.pid(), Some(pid));
    drop((first, watchdog));
    assert!(fs::exists(format!("/proc/{pid}")).unwrap());
    drop(second);

    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    assert!(stage.alive().is_empty() && zombies().is_empty());
}

#[tokio::test]
async fn a_watchdog_that_dies_again_and_again_is_given_up_and_servers_run_on() {
    let stage = Stage::enter().await;
    let server = stage.start_tree("exec $HANG", 0, 1).await;
    let mut deaths = 0;
    while let Some(pid) = stage.watchdog.pid() {
        kill(pid, "KILL");
        deaths += 1;
        assert!(until(|| stage.watchdog.pid() != Some(pid)).await);
    }

    assert_eq!(deaths, 5);
    let another = stage.start_tree("exec $HANG", 0, 2).await;
    assert_eq!(
        (stage.watchdog.pid(), another.process.try_exited()),
        (None, None)
    );
    drop((server, another));
    assert!(stage.gone().await && zombies().is_empty());
}

/// Pipes and pidfds; what a runtime opens for itself (other tests wait for their turn) is neither.
fn descriptors() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let link = fs::read_link(entry.ok()?.path()).ok()?;
        Some(link.to_string_lossy().into_owned())
    });
    links
        .filter(|link| link.contains("pipe:") || link.contains("pidfd"))
        .count()
}
