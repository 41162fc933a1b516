//! That starts, failures and restarts add nothing up: no process, no zombie, no descriptor.

use std::fs;

use futures::{StreamExt as _, stream};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Value, json};
use steadfast::{Pool, ServerConfig, Session};
use steadfast_tests::probe::Event;
use tokio::time::timeout;

use crate::{
    ALONE,
    support::{Agent, Stage, gone, kill_unseen, ms, pool_settings, quick, secs, signal, until},
    usage::{children, descriptors},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i03_an_acquire_dropped_at_any_moment_leaves_nothing_stdio() {
    let _alone = ALONE.lock().await;
    let slow = json!({"start": {"delay_ms": 400}, "list": {"delay_ms": 400}});
    for moment in ["asked", "started", "greeted", "listing", "joined"] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let config = stage.server(&slow);
        let session = pool.session("a");
        let other = pool.session("b");

        let dropped = timeout(secs(10), async {
            tokio::select! {
                lease = session.acquire(&config) => panic!("too quick: {lease:?}"),
                _ = other.acquire(&config), if moment == "joined" => panic!("too quick"),
                () = comes(&stage, moment) => {}
            }
        });
        dropped.await.expect("the moment comes");

        // The sessions and the pool live on, and so does the watchdog; the start was called
        // off with its last waiter.
        let only_watchdog =
            || children().len() <= 1 && children().iter().all(|pid| !is_server(*pid));
        assert!(until(only_watchdog).await, "{moment}: {:?}", children());
        assert_eq!(pool.snapshot().subprocess_count, 0, "{moment}");
        assert_eq!(zombies(), [0; 0], "{moment}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn i04_fifty_servers_killed_from_outside_leave_no_zombie_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let pool = Pool::new(pool_settings().with_grace(ms(0))).unwrap();
    for number in 0..50 {
        let session = pool.session(number.to_string());
        let config = own(&stage, number);
        let lease = session.acquire(&config).await.unwrap();
        let pid = *stage.started().last().unwrap();
        if number % 2 == 0 {
            kill_unseen(pid);
        } else {
            signal(pid, Signal::KILL);
        }
        drop((lease, session));
        assert!(until(|| buried(pid)).await, "{number}: {pid} is left");
        assert_eq!(zombies(), [0; 0], "{number}");
    }
    assert_eq!(stage.started().len(), 50);
    stage.end(pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_three_hundred_lives_of_servers_leave_no_descriptor_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let limit = Limited::to(256);
    // What the runtime opens with the first process stays open.
    let settings = || pool_settings().with_grace(ms(0));
    let warm = Pool::new(settings()).unwrap();
    live(&stage, &warm.session("warm"), 1000).await;
    warm.drain_all(secs(5)).await;
    drop(warm);
    assert!(until(|| children().is_empty()).await, "{:?}", children());
    let before = descriptors();

    let pool = Pool::new(settings()).unwrap();
    let session = pool.session("a");
    let lives = (0..150).map(|number| live(&stage, &session, number));
    stream::iter(lives).buffer_unordered(4).count().await;
    let failures = (0..100).map(|number| fail(&stage, &session, number));
    stream::iter(failures).buffer_unordered(4).count().await;
    let lease = session.acquire(&own(&stage, 0)).await.unwrap();
    for number in 0..50 {
        let restarts = pool.restart("probe", None).await;
        assert!(
            restarts.len() == 1 && restarts[0].restarted,
            "{number}: {restarts:?}"
        );
    }

    let starts = stage.started().len();
    assert_eq!(starts, 1 + 150 + 50 + 1 + 50, "one process for each life");
    drop((lease, session));
    stage.end(pool).await;
    assert!(until(|| children().is_empty()).await, "{:?}", children());
    let level = until(|| descriptors() <= before + 2).await;
    println!(
        "i12: {starts} starts, {before} descriptors before, {} after",
        descriptors()
    );
    assert!(level, "{before} before, {} after", descriptors());
    drop(limit);
}

/// Acquire, call, release.
async fn live(stage: &Stage, session: &Session, number: usize) {
    let lease = session.acquire(&own(stage, number)).await.unwrap();
    let answer = Agent::new(lease, quick()).call("w", json!({})).await;
    assert!(answer.is_ok(), "{number}: {answer:?}");
}

/// A start that fails: half of them before there is a process.
async fn fail(stage: &Stage, session: &Session, number: usize) {
    let broken = json!({"start": {"exit_on_initialize": 3}});
    let fields = match number % 2 {
        0 => json!({"env": {"NUMBER": number.to_string()}}),
        _ => json!({"command": format!("/nonexistent/{number}")}),
    };
    let config = stage.server_with(&broken, fields);
    let failure = session.acquire(&config).await.unwrap_err();
    let told = failure.to_string();
    let why = ["status 3", "No such file"].map(|why| told.contains(why));
    assert!(
        why.contains(&true) || told.contains("/nonexistent/"),
        "{told}"
    );
}

/// A server that shares with no other number.
fn own(stage: &Stage, number: usize) -> ServerConfig {
    let fields: Value = json!({"env": {"NUMBER": number.to_string()}});
    stage.server_with(&json!({}), fields)
}

async fn comes(stage: &Stage, moment: &str) {
    let received = |events: &[Event], method: &str| {
        let asked = |event: &&Event| event.method.as_deref() == Some(method);
        events.iter().any(|event| asked(&event))
    };
    if moment != "asked" {
        let found = |events: &[Event]| match moment {
            "started" => !events.is_empty(),
            "listing" => received(events, "tools/list"),
            _ => received(events, "initialize"),
        };
        stage.events_with(found).await;
    }
}

/// The watchdog is no server.
fn is_server(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.windows(7).any(|part| part == b"--probe")
}

fn buried(pid: u32) -> bool {
    !children().contains(&pid)
}

/// Our own children that have ended and were not waited for.
fn zombies() -> Vec<u32> {
    let dead = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'))
    };
    children().into_iter().filter(dead).collect()
}

/// A limit on the open files of this process, for a while.
struct Limited(Rlimit);

// === impl Limited ===

impl Limited {
    fn to(files: u64) -> Self {
        let was = getrlimit(Resource::Nofile);
        let limit = Rlimit {
            current: Some(files),
            ..was
        };
        setrlimit(Resource::Nofile, limit).unwrap();
        Self(was)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}
