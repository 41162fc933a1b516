//! What is alive when a server, its pool or its host has ended: nothing, however it ended.

use std::{future::pending, time::Duration};

use serde_json::{Value, json};
use steadfast::{Pool, PoolSettings, ServerConfig};
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};

use crate::{
    host::Host,
    support::{Marked, Stage, kill_unseen, secs},
};

/// What is left after this long counts as left behind.
const BOUND: Duration = Duration::from_secs(6);

/// A tree of processes, and how it comes to its end.
struct Scenario {
    name: &'static str,
    knobs: Value,
    /// What the shell around the server starts beside it.
    beside: &'static str,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    /// The pool is drained.
    Drain,
    /// The server's own process is killed, and nobody asks for it again.
    Crash,
    /// The host is killed when the entry has come so far.
    HostDies(&'static str),
}

/// What became of it.
struct Row {
    name: &'static str,
    before: usize,
    left: Vec<u32>,
    took: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_trees_that_others_leave_behind_nothing_is_left() {
    let rows = futures::future::join_all(scenarios().into_iter().map(play)).await;

    println!("{:<52} before  left  took", "scenario");
    for row in &rows {
        let (left, took) = (row.left.len(), row.took);
        println!("{:<52} {:>6}  {left:>4}  {took:.1?}", row.name, row.before);
    }
    for row in rows {
        assert!(row.left.is_empty(), "{}: {:?} are left", row.name, row.left);
        assert!(row.took < BOUND, "{} took {:?}", row.name, row.took);
    }
}

fn scenarios() -> Vec<Scenario> {
    let new = |name, knobs, beside, end| Scenario {
        name,
        knobs,
        beside,
        end,
    };
    let helper = json!({"process": {"helper": {}}});
    let deaf = json!({"process": {"ignore_eof": true}});
    let stubborn = json!({"process": {
        "ignore_eof": true, "ignore_sigterm": true, "helper": {"ignore_sigterm": true},
    }});
    let escaped = json!({"process": {"helper": {"setsid": true, "ignore_sigterm": true}}});
    let slow = json!({"start": {"never": true}, "process": {"helper": {}}});
    let both = "sleep 300 &";
    let away = "setsid sleep 300 &";
    vec![
        new("C1 server exits on EOF", json!({}), "", End::Drain),
        new("C2 two helpers", helper.clone(), both, End::Drain),
        new("C3 ignores EOF", deaf, "", End::Drain),
        new("C4 ignores EOF and TERM, helper", stubborn.clone(), "", End::Drain),
        new("C5 host killed, helpers", helper.clone(), both, End::HostDies("ready")),
        new("C6 helpers with setsid", escaped.clone(), away, End::Drain),
        new("C7 server crashed, helpers", escaped.clone(), both, End::Crash),
        new("host killed during a start", slow, both, End::HostDies("starting")),
        new("host killed during a call", stubborn.clone(), "", End::HostDies("calling")),
        new("host killed during a restart", helper, away, End::HostDies("restarting")),
        new("host killed during a drain", stubborn, both, End::HostDies("draining")),
        new("host killed, helpers with setsid", escaped, away, End::HostDies("ready")),
    ]
}

async fn play(scenario: Scenario) -> Row {
    let stage = Stage::enter().await;
    let marked = Marked::new(&stage);
    let config = wrapped(&stage, &scenario.knobs, scenario.beside);
    let (before, ended) = match scenario.end {
        End::HostDies(moment) => {
            let host = Host::start(&stage, moment, &scenario.knobs, scenario.beside).await;
            let before = marked.alive().len();
            let ended = Instant::now();
            host.is_killed();
            (before, ended)
        }
        End::Drain | End::Crash => {
            // With the times that users get who set none.
            let pool = Pool::new(PoolSettings::default()).unwrap();
            let session = pool.session("a");
            let _lease = session.acquire(&config).await.unwrap();
            let before = marked.alive().len();
            let ended = Instant::now();
            if matches!(scenario.end, End::Crash) {
                kill_unseen(stage.started()[0]);
                marked.gone_within(BOUND).await;
            }
            pool.drain_all(secs(10)).await;
            (before, ended)
        }
    };
    marked.gone_within(BOUND).await;
    let took = ended.elapsed();
    assert!(before >= 2, "{}: only {before} ran", scenario.name);
    Row {
        name: scenario.name,
        before,
        left: marked.alive(),
        took,
    }
}

/// A server behind a shell that stays, as `npx` does.
pub(crate) fn wrapped(stage: &Stage, knobs: &Value, beside: &str) -> ServerConfig {
    let script = format!("{beside} \"$0\" --probe; exit $?");
    let probe = env!("CARGO_BIN_EXE_probe");
    stage.server_with(knobs, json!({"command": "sh", "args": ["-c", script, probe]}))
}

#[test]
fn i03_a_pool_dropped_outside_any_runtime_leaves_nothing() {
    let (_watch, stage, marked) = enter();
    let runtime = runtime();
    let pool = runtime.block_on(stubborn_pool(&stage));

    assert!(marked.alive().len() >= 3, "{:?}", marked.alive());
    let ended = Instant::now();
    std::thread::spawn(move || drop(pool)).join().unwrap();

    tell("dropped on a thread outside the runtime", &marked, ended);
}

#[test]
fn i03_a_pool_that_outlives_its_runtime_leaves_nothing() {
    let (_watch, stage, marked) = enter();
    let runtime = runtime();
    let pool = runtime.block_on(stubborn_pool(&stage));
    assert!(marked.alive().len() >= 3, "{:?}", marked.alive());
    let ended = Instant::now();
    drop(runtime);

    drop(pool);

    tell("dropped after its runtime", &marked, ended);
}

#[test]
fn i03_the_shutdown_of_a_runtime_leaves_nothing_of_the_pools_its_tasks_own() {
    let (_watch, stage, marked) = enter();
    let runtime = runtime();
    let pool = runtime.block_on(stubborn_pool(&stage));
    runtime.spawn(async move {
        let _pool = pool;
        pending::<()>().await;
    });
    assert!(marked.alive().len() >= 3, "{:?}", marked.alive());
    let ended = Instant::now();

    drop(runtime);

    tell("owned by a task at the shutdown of its runtime", &marked, ended);
}

/// What is left 3 s after a kill that had nothing to wait for.
fn tell(what: &str, marked: &Marked, ended: Instant) {
    runtime().block_on(marked.gone_within(secs(3)));
    let (left, took) = (marked.alive(), ended.elapsed());
    println!("pool {what}: {} left after {took:.1?}", left.len());
    assert!(left.is_empty(), "{left:?} are left");
}

/// A pool and its only server, which ends only when it is killed, and so does what it started.
async fn stubborn_pool(stage: &Stage) -> (Pool, steadfast::Session, steadfast::Lease) {
    let knobs = json!({"process": {
        "ignore_eof": true, "ignore_sigterm": true,
        "helper": {"ignore_sigterm": true, "setsid": true},
    }});
    let pool = Pool::new(PoolSettings::default()).unwrap();
    let session = pool.session("a");
    let config = wrapped(stage, &knobs, "");
    let lease = session.acquire(&config).await.unwrap();
    (pool, session, lease)
}

fn enter() -> (Runtime, Stage, Marked) {
    let watch = runtime();
    let stage = watch.block_on(Stage::enter());
    let marked = Marked::new(&stage);
    (watch, stage, marked)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}
