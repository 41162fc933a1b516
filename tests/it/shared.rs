//! Many calls of several sessions on one connection, each with its own end.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use serde_json::json;
use steadfast::{
    Class, Lease, Limits,
    timeout::{Settings, TimeoutLayer},
};
use steadfast_tests::probe::EventKind;
use tokio::time::{sleep, timeout};
use tower::{Layer as _, ServiceExt as _};

use crate::support::{Agent, Stage, ms, object, quick, text};

#[tokio::test]
async fn j05_a_cancel_ends_one_call_of_one_session_and_nothing_else_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let (a, b) = (pool.session("a"), pool.session("b"));
    let config = stage.server(&json!({}));
    let mine = Agent::new(a.acquire(&config).await.unwrap(), quick());
    let theirs = Agent::new(b.acquire(&config).await.unwrap(), quick());
    let pid = || pool.snapshot().servers["probe"].entry_summary[0].pid;
    let before = pid();
    let stays = theirs.begin("w", json!({"tag": "stays", "delay_ms": 1500, "echo": "b"}));
    stage.executed_soon("stays").await;

    let call = mine.call("w", json!({"tag": "cancelled", "delay_ms": 5000}));
    assert!(
        timeout(ms(300), call).await.is_err(),
        "it takes five seconds"
    );

    let answer = stays.await.unwrap().unwrap();
    assert_eq!(text(&answer.value), "b");
    assert_eq!(pid(), before);
    let events = stage.events();
    let id = |tag: &str| {
        let called = events
            .iter()
            .find(|event| event.tag.as_deref() == Some(tag));
        called.unwrap().id.clone()
    };
    let cancels: Vec<_> = events
        .iter()
        .filter(|event| event.method.as_deref() == Some("notifications/cancelled"))
        .map(|event| event.request_id.clone())
        .collect();
    assert_eq!(cancels, [id("cancelled")]);
    drop((mine, theirs, a, b));
    stage.end(pool).await;
}

/// How many calls were answered, and how many ended otherwise.
async fn two_hundred(session: usize, lease: Lease) -> (usize, usize) {
    // Alone: a circuit or a retry would change what is counted.
    let layer = TimeoutLayer::new(Settings::new().with_read(ms(300))).unwrap();
    let service = layer.layer(lease.clone());
    let (mut answered, mut ended) = (0, 0);
    for number in 0..200 {
        let mine = format!("{session}/{number}");
        let call = lease
            .tool("w")
            .with_arguments(object(json!({ "echo": mine })))
            .with_limits(Limits::new().with_read(ms(300)));
        match service.clone().oneshot(call).await {
            Ok(answer) => {
                assert_eq!(text(&answer), mine, "the answer to another question");
                answered += 1;
            }
            Err(failure) => {
                let class = failure.class();
                let possible = [Class::Timeout, Class::Unknown, Class::NotSent];
                assert!(possible.contains(&class), "{failure}");
                ended += 1;
            }
        }
    }
    (answered, ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k06_everybody_gets_the_answer_to_their_own_question_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    // Answers in random order, one in ten beyond its limit; executions are not counted.
    let config = stage.server(&json!({
        "ledger": null, "seed": 6,
        "call": {"jitter_ms": 8, "slow_percent": 10, "slow_ms": 600, "on_cancel": "ignore"},
    }));
    let sessions: Vec<_> = (0..20).map(|n| pool.session(n.to_string())).collect();
    let leases = join_all(sessions.iter().map(|session| session.acquire(&config))).await;

    let callers = leases.into_iter().enumerate();
    let callers = join_all(callers.map(|(n, lease)| two_hundred(n, lease.unwrap())));
    let restart = async {
        sleep(ms(2500)).await;
        // Late answers of the old connection come to nobody, and none to the new one.
        assert!(spy.count("late_answers") > 0);
        pool.restart("probe", None).await[0].restarted
    };
    let (counts, restarted) = tokio::join!(callers, restart);

    assert!(restarted);
    let answered: usize = counts.iter().map(|(answered, _)| answered).sum();
    let ended: usize = counts.iter().map(|(_, ended)| ended).sum();
    assert_eq!(answered + ended, 4000);
    assert!(answered > 3000 && ended > 200, "{answered} {ended}");
    let mut ids: HashMap<u32, BTreeSet<String>> = HashMap::new();
    for event in stage.events() {
        if event.kind == EventKind::Request {
            let id = event.id.unwrap().to_string();
            assert!(ids.entry(event.pid).or_default().insert(id), "used again");
        }
    }
    assert_eq!(ids.len(), 2, "before the restart and after it");
    drop(sessions);
    stage.end(pool).await;
}
