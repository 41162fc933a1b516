//! What a server is told of calls that nobody waits for any more, and whose answer is whose.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};
use steadfast::{Class, timeout};
use steadfast_tests::probe::{Event, EventKind};
use tokio::task::JoinHandle;

use super::Over;
use crate::support::{Agent, Stage, ms, quick, text, until};

pub(crate) async fn n01_a_call_that_is_given_up_is_cancelled_once(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let config = over.server(&stage, &json!({"call": {"stall": true}})).await;
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

pub(crate) async fn n01_each_of_fifty_calls_dropped_at_once_is_cancelled(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({"call": {"stall": true}})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let calls: Vec<_> = (0..50).map(|_| agent.begin("w", json!({}))).collect();
    stage.events_with(|events| called(events).len() == 50).await;

    calls.iter().for_each(JoinHandle::abort);

    let events = stage
        .events_with(|events| cancels(events).len() >= 50)
        .await;
    let unique = |ids: Vec<Value>| ids.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    assert_eq!(cancels(&events).len(), 50);
    assert_eq!(unique(cancels(&events)), unique(called(&events)));
    assert_eq!(spy.count("pending"), 0);
    stage.end(pool).await;
}

pub(crate) async fn n01_a_call_dropped_before_it_was_sent_leaves_no_trace(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    // While the first runs, the server reads nothing, and the second stops up the way.
    let busy = json!({"tag": "busy", "blocking": true, "delay_ms": 2500});
    let busy = agent.begin("w", busy);
    stage.executed_soon("busy").await;
    let large = json!({"tag": "large", "ask_params": "x".repeat(over.stuck_at())});
    let large = agent.begin("w", large);
    assert!(until(|| spy.count("pending") == 2).await);
    let queued: Vec<_> = (0..50).map(|_| agent.begin("w", json!({}))).collect();
    assert!(until(|| spy.count("pending") == 52).await);
    queued.iter().for_each(JoinHandle::abort);
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

pub(crate) async fn k06_every_caller_gets_its_own_answer(over: Over) {
    const CALLERS: usize = 20;
    const CALLS: usize = 100;

    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let knobs = json!({
        "ledger": null,
        "call": {
            "jitter_ms": 20, "slow_percent": 10, "slow_ms": 400, "on_cancel": "ignore",
        },
    });
    let config = over.server(&stage, &knobs).await;
    let impatient = quick()
        .with_timeout(timeout::Settings::new().with_read(ms(250)))
        .without_breaker();
    let agent = Agent::new(session.acquire(&config).await.unwrap(), impatient);

    let callers = (0..CALLERS).map(async |caller| {
        let mut answered = 0;
        for call in 0..CALLS {
            let echo = format!("{caller}/{call}");
            match agent.call("w", json!({"echo": echo})).await {
                Ok(answer) => {
                    assert_eq!(text(&answer.value), echo);
                    answered += 1;
                }
                Err(failure) => assert_eq!(failure.class(), Class::Timeout, "{failure}"),
            }
        }
        answered
    });
    let answered: usize = join_all(callers).await.into_iter().sum();

    assert!(answered > CALLERS * CALLS / 2, "{answered} were answered");
    assert!(answered < CALLERS * CALLS, "none was late");
    assert!(until(|| spy.count("pending") == 0).await);
    let events = stage.events();
    let ids: BTreeSet<_> = called(&events).iter().map(Value::to_string).collect();
    assert_eq!(ids.len(), called(&events).len(), "an id was used twice");
    assert_eq!(stage.received("initialize"), 1);
    stage.end(pool).await;
}

/// The call of this tag is cancelled soon.
async fn cancelled_soon(stage: &Stage, tag: &str) {
    let found = |events: &[Event]| {
        let call = events
            .iter()
            .find(|event| event.tag.as_deref() == Some(tag));
        let id = call.and_then(|call| call.id.clone());
        let cancels = cancels(events).into_iter().map(Some);
        cancels.filter(|of| *of == id).count() == 1
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
