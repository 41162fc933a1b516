//! Servers that die: no call on them hangs.

use rustix::process::Signal;
use serde_json::json;
use steadfast::{
    Pool,
    pool::{EntrySnapshot, Status, process::Grace},
};
use steadfast_tests::probe::EventKind;
use tokio::time::Instant;

use crate::support::{
    Agent, Stage, gone, kill_unseen, ms, pool_settings, quick, secs, signal, text, until,
};

#[tokio::test]
async fn a04_a_server_killed_while_idle_is_replaced_for_the_next_call_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let half_an_hour =
        json!({"steadfast": {"limits": {"read_ms": 1_800_000, "total_ms": 1_800_000}}});
    let config = stage.server_with(&json!({}), half_an_hour);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    for (tag, noticed) in [("at once", false), ("later", true)] {
        let pid = *stage.started().last().unwrap();
        kill_unseen(pid);
        if noticed {
            assert!(until(|| status(&pool) == Status::Idle).await);
            let why = entry(&pool).last_error.unwrap();
            assert!(why.contains(": killed by signal 9 (SIGKILL)"), "{why}");
        }

        let answer = agent.call("w", json!({"tag": tag})).await.unwrap();

        assert!(answer.is_live());
        assert_eq!(stage.executed(tag), 1);
    }
    assert_eq!(stage.started().len(), 3, "one for each that was killed");
    stage.end(pool).await;
}

#[tokio::test]
async fn a06_an_answer_does_not_wait_for_its_server_to_end_stdio() {
    let stage = Stage::enter().await;
    let steps = Grace::new(ms(500), ms(500), secs(1));
    let pool = Pool::new(pool_settings().with_closing(steps)).unwrap();
    let stubborn = json!({"process": {"ignore_eof": true, "ignore_sigterm": true}});
    let own = json!({"steadfast": {"shared": false}});
    let config = stage.server_with(&stubborn, own);
    let session = pool.session("a");
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let answer = agent.call("w", json!({"tag": "one", "echo": "done"})).await;
    assert_eq!(text(&answer.unwrap().value), "done");
    let steps = stage.pids(EventKind::Eof);
    assert!(steps.is_empty(), "a step was taken before the answer");
    let closed = Instant::now();
    session.close();
    let pids = stage.started();
    gone(pids).await;

    let took = closed.elapsed();
    assert!(took >= ms(1000), "it was killed too soon: {took:?}");
    assert_eq!(stage.pids(EventKind::Term).len(), 1, "each step was taken");
    stage.end(pool).await;
}

#[tokio::test]
async fn a06_a_drain_ends_in_time_and_says_what_it_killed_stdio() {
    let stage = Stage::enter().await;
    let pool = Pool::new(pool_settings().with_closing(Grace::default())).unwrap();
    let stubborn = json!({"process": {"ignore_eof": true, "ignore_sigterm": true}});
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&stubborn)).await.unwrap();

    let begun = Instant::now();
    let report = pool.drain_all(secs(5)).await;

    assert!(begun.elapsed() <= secs(5), "{:?}", begun.elapsed());
    let killed = report.forced.iter().map(|forced| &*forced.server);
    assert_eq!(killed.collect::<Vec<_>>(), ["probe"], "{report:?}");
    assert_eq!(report.drained, 0);
    drop(lease);
    stage.ended(pool).await;
}

#[tokio::test]
async fn a11_a_server_that_ended_while_idle_is_never_taken_for_alive_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let (a, b) = (pool.session("a"), pool.session("b"));
    let polite = json!({"process": {"goodbye": stage.path("goodbye")}});
    let config = stage.server(&polite);
    let first = a.acquire(&config).await.unwrap();
    let second = b.acquire(&config).await.unwrap();
    let dead = entry(&pool).pid.unwrap();

    // Told from outside; it then exits by itself.
    signal(dead, Signal::TERM);
    assert!(until(|| status(&pool) == Status::Idle).await);
    let told = entry(&pool);
    assert_eq!((told.refs, told.pid), (2, None));
    let why = told.last_error.unwrap();
    assert!(why.contains(": exited with status 0"), "{why}");
    let third = a.acquire(&config).await.unwrap();

    let alive = entry(&pool).pid.unwrap();
    assert_ne!(alive, dead);
    for lease in [first, second, third] {
        let agent = Agent::new(lease, quick());
        let answer = agent.call("pid", json!({})).await.unwrap();
        let structured = answer.value.structured_content.unwrap();
        assert_eq!(structured["pid"], json!(alive));
    }
    assert_eq!(stage.started(), [dead, alive]);
    stage.end(pool).await;
}

fn entry(pool: &Pool) -> EntrySnapshot {
    pool.snapshot().servers["probe"].entry_summary[0].clone()
}

fn status(pool: &Pool) -> Status {
    entry(pool).status
}
