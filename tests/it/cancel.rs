//! What a server is told of calls that nobody waits for any more.

use std::{cell::Cell, collections::BTreeSet, future::ready, time::Duration};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use steadfast::{Class, timeout};
use steadfast_tests::probe::{Event, EventKind};
use tokio::time::{Instant, sleep};

use crate::support::{Agent, Stage, ms, quick, text, until};

#[tokio::test]
async fn n01_a_call_that_is_given_up_is_cancelled_once_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let config = stage.server(&json!({"call": {"stall": true}}));
    let session = pool.session("a");
    let lease = session.acquire(&config).await.unwrap();
    let limited = quick().with_timeout(timeout::Settings::new().with_read(ms(300)));
    let limited = Agent::new(lease.clone(), limited);
    let patient = Agent::new(lease, quick());

    let timed_out = limited.call("w", json!({"tag": "timed out"})).await;
    assert_eq!(timed_out.unwrap_err().class(), Class::Timeout);
    cancelled_soon(&stage, "timed out").await;

    let dropped = patient.begin("w", json!({"tag": "dropped"}));
    stage.executed_soon("dropped").await;
    dropped.abort();
    cancelled_soon(&stage, "dropped").await;

    let closed = patient.begin("w", json!({"tag": "closed"}));
    stage.executed_soon("closed").await;
    session.close();
    let failure = closed.await.unwrap().unwrap_err();
    assert_eq!(failure.class(), Class::Cancelled, "{failure}");
    assert!(failure.may_have_run(), "{failure}");
    cancelled_soon(&stage, "closed").await;

    assert_eq!(cancels(&stage.events()).len(), 3, "each of them once");
    stage.end(pool).await;
}

#[tokio::test]
async fn n01_a_handshake_that_is_given_up_is_not_cancelled_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let never = json!({"start": {"never": true}});
    let config = stage.server_with(&never, json!({"discoveryTimeoutMs": 500}));

    let failure = session.acquire(&config).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(stage.received("initialize"), stage.started().len());
    assert_eq!(cancels(&stage.events()).len(), 0);
    stage.end(pool).await;
}

#[tokio::test]
async fn n01_each_of_fifty_calls_dropped_at_once_is_cancelled_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let config = stage.server(&json!({"call": {"stall": true}}));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let calls: Vec<_> = (0..50).map(|_| agent.begin("w", json!({}))).collect();
    stage.events_with(|events| called(events).len() == 50).await;

    calls.iter().for_each(tokio::task::JoinHandle::abort);

    let events = stage
        .events_with(|events| cancels(events).len() >= 50)
        .await;
    let unique = |ids: Vec<Value>| ids.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    assert_eq!(cancels(&events).len(), 50);
    assert_eq!(unique(cancels(&events)), unique(called(&events)));
    assert_eq!(spy.count("pending"), 0);
    stage.end(pool).await;
}

#[tokio::test]
async fn n01_a_call_dropped_before_it_was_sent_leaves_no_trace_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());

    // While the first runs, the server reads nothing, and the second stops up the pipe.
    let busy = agent.begin(
        "w",
        json!({"tag": "busy", "blocking": true, "delay_ms": 1000}),
    );
    stage.executed_soon("busy").await;
    let large = agent.begin("w", json!({"tag": "large", "echo": "x".repeat(1 << 20)}));
    assert!(until(|| spy.count("pending") == 2).await);
    let queued: Vec<_> = (0..50).map(|_| agent.begin("w", json!({}))).collect();
    assert!(until(|| spy.count("pending") == 52).await);
    queued.iter().for_each(tokio::task::JoinHandle::abort);
    assert!(until(|| spy.count("pending") == 2).await);

    assert!(busy.await.unwrap().unwrap().is_live());
    assert!(large.await.unwrap().unwrap().is_live());
    let answer = agent.call("w", json!({"tag": "next"})).await;
    assert!(answer.unwrap().is_live());
    let tags = stage.events().into_iter().filter_map(|event| event.tag);
    assert_eq!(tags.collect::<Vec<_>>(), ["busy", "large", "next"]);
    assert_eq!(called(&stage.events()).len(), 3, "no other was sent");
    assert_eq!(cancels(&stage.events()).len(), 0);
    stage.end(pool).await;
}

#[tokio::test]
async fn n04_a_cancel_that_crosses_its_answer_harms_no_call_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    for on_cancel in ["stop", "answer", "error", "ignore"] {
        let crosses = json!({"on_cancel": on_cancel, "answer_again": 1, "delay_ms": 3});
        let config = stage.server(&json!({"ledger": null, "call": crosses}));
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

        let begun = Instant::now();
        assert!(agent.call("w", json!({})).await.unwrap().is_live());
        let patience = Cell::new(begun.elapsed());
        let calls = stream::iter(0..250).map(|number| crossed(&agent, number, &patience));
        let answered = calls
            .buffer_unordered(8)
            .filter(|answered| ready(*answered));
        let answered = answered.count().await;

        assert!(
            (5..245).contains(&answered),
            "{on_cancel}: {answered} of 250 were answered"
        );
        for number in 0..20 {
            let echo = format!("later {number}");
            let answer = agent.call("w", json!({"echo": echo})).await.unwrap();
            assert_eq!(text(&answer.value), echo, "{on_cancel}");
        }
        assert!(until(|| spy.count("pending") == 0).await, "{on_cancel}");
    }
    let entries = pool.snapshot().servers["probe"].entry_summary.clone();
    let connected = entries.iter().filter(|entry| entry.pid.is_some()).count();
    assert_eq!((entries.len(), connected), (4, 4), "none was started anew");
    stage.end(pool).await;
}

/// One call that is dropped at about the time when its answer comes; whether that came.
/// `patience` is kept where half of the calls are answered.
async fn crossed(agent: &Agent, number: usize, patience: &Cell<Duration>) -> bool {
    let limit = patience.get();
    tokio::select! {
        answer = agent.call("w", json!({"echo": number})) => {
            assert_eq!(text(&answer.unwrap().value), number.to_string());
            patience.set(limit.mul_f64(0.95));
            true
        }
        () = sleep(limit) => {
            patience.set(limit.mul_f64(1.05));
            false
        }
    }
}

/// The call of this tag is cancelled soon.
async fn cancelled_soon(stage: &Stage, tag: &str) {
    let found = |events: &[Event]| {
        let call = events
            .iter()
            .find(|event| event.tag.as_deref() == Some(tag));
        let id = call.and_then(|call| call.id.clone());
        cancels(events)
            .into_iter()
            .map(Some)
            .filter(|of| *of == id)
            .count()
            == 1
    };
    stage.events_with(found).await;
}

/// The ids of the calls that came in.
fn called(events: &[Event]) -> Vec<Value> {
    let calls = events
        .iter()
        .filter(|e| e.method.as_deref() == Some("tools/call"));
    calls.filter_map(|event| event.id.clone()).collect()
}

/// The ids that cancel notices were about.
fn cancels(events: &[Event]) -> Vec<Value> {
    let notices = events.iter().filter(|e| e.kind == EventKind::Notice);
    notices
        .filter_map(|event| event.request_id.clone())
        .collect()
}
