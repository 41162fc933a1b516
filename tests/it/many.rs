//! Thousands of real processes, one after the other, and nothing of them is left.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use steadfast::{Pool, ServerConfig, Session, pool::Respawn};
use tokio::{runtime::Handle, time::Instant};

use crate::{
    ALONE,
    support::{Agent, Stage, ms, pool_settings, quick, secs, until},
    usage::{children, descriptors, memory},
};

const LIVES: usize = 1000;
const FAILURES: usize = 1000;
const RESTARTS: usize = 200;

/// So many at once: more than cores, so that ends and starts overlap.
const AT_ONCE: usize = 6;

/// What the process uses when nothing should be left of what came before.
#[derive(Clone, Copy, Debug)]
struct Level {
    tasks: usize,
    descriptors: usize,
    children: usize,
    memory: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_thousands_of_lives_failures_and_restarts_leave_every_level_as_it_was_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    // What is remembered of failures, for a while, is no leak; so not for long.
    let respawn = Respawn::new([ms(1); 3], ms(1)).with_healthy_after(ms(1));
    let settings = pool_settings().with_respawn_local(respawn);
    let pool = Pool::new(settings.with_grace(ms(0))).unwrap();
    let begun = Instant::now();

    // What is made once and kept: the watchdog, a task that waits for its end, threads.
    part(&stage, &pool, 0..10).await;
    let first = level().await;
    part(&stage, &pool, 10..50).await;
    let half = level().await;
    part(&stage, &pool, 50..100).await;
    let whole = level().await;

    println!(
        "i12: {first:?}, {half:?}, {whole:?} after {:?}",
        begun.elapsed()
    );
    for later in [half, whole] {
        assert_eq!(later.tasks, first.tasks);
        assert_eq!(later.children, 1, "the watchdog alone");
        assert!(later.descriptors <= first.descriptors + 2);
    }
    let grown = whole.memory.saturating_sub(half.memory);
    assert!(grown < 2 << 20, "{grown} bytes in the second half");
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.total, snapshot.subprocess_count), (0, 0));
    stage.end(pool).await;
    assert!(until(|| children().is_empty()).await, "{:?}", children());
}

/// So many hundredths of all.
async fn part(stage: &Stage, pool: &Pool, hundredths: std::ops::Range<usize>) {
    let session = pool.session("a");
    let of = |all: usize| hundredths.start * all / 100..hundredths.end * all / 100;
    let lives = of(LIVES).map(|number| live(stage, &session, number));
    stream::iter(lives).buffer_unordered(AT_ONCE).count().await;
    let failed = AtomicUsize::new(0);
    let failures = of(FAILURES).map(|number| fail(stage, &session, number, &failed));
    stream::iter(failures)
        .buffer_unordered(AT_ONCE)
        .count()
        .await;
    assert_eq!(failed.into_inner(), of(FAILURES).len());
    let lease = session.acquire(&own(stage, "restarted")).await.unwrap();
    for number in of(RESTARTS) {
        let restarts = pool.restart("probe", None).await;
        assert!(
            restarts.len() == 1 && restarts[0].restarted,
            "{number}: {restarts:?}"
        );
    }
    drop(lease);
}

/// Acquire, call, release.
async fn live(stage: &Stage, session: &Session, number: usize) {
    let config = own(stage, &number.to_string());
    let lease = session.acquire(&config).await.unwrap();
    let answer = Agent::new(lease, quick()).call("r", json!({})).await;
    assert!(answer.is_ok(), "{number}: {answer:?}");
}

/// A start that fails: no such program, a process that ends at once, one that breaks off
/// its handshake, or one that leaves a child behind.
async fn fail(stage: &Stage, session: &Session, number: usize, failed: &AtomicUsize) {
    let number_too = json!({"NUMBER": number.to_string()});
    let fields: Value = match number % 4 {
        0 => json!({"command": format!("/nonexistent/{number}")}),
        1 => json!({"command": "false", "env": number_too}),
        2 => json!({"command": "sh", "args": ["-c", "read -r line; exit 3"], "env": number_too}),
        _ => json!({"command": "sh", "args": ["-c", "sleep 99 & exit 4"], "env": number_too}),
    };
    let config = stage.server_with(&quiet(), fields);
    let begun = Instant::now();
    let failure = session.acquire(&config).await.unwrap_err();
    assert!(!failure.may_have_run(), "{failure}");
    // A child that holds the output of a dead wrapper hides its end, but not for long.
    assert!(begun.elapsed() < secs(10), "{number}: {failure}");
    failed.fetch_add(1, Ordering::Relaxed);
}

/// A server that shares with no other.
fn own(stage: &Stage, number: &str) -> ServerConfig {
    stage.server_with(&quiet(), json!({"env": {"NUMBER": number}}))
}

/// A probe that writes nothing down: a thousand of them would wait for the disk.
fn quiet() -> Value {
    json!({"ledger": null, "events": null, "state": null})
}

/// Once all servers have ended.
async fn level() -> Level {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let settled = until(|| children().len() == 1 && tasks() <= 1).await;
    assert!(settled, "{} tasks, {:?}", tasks(), names());
    Level {
        tasks: tasks(),
        descriptors: descriptors(),
        children: children().len(),
        memory: memory().0,
    }
}

/// Of each child, what runs in it.
fn names() -> Vec<String> {
    let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    children().into_iter().map(name).collect()
}
