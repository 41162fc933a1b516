//! What is repeated after a fault, and what never is.

use serde_json::{Value, json};
use steadfast::{Class, Phase, circuit_breaker::State, retry, timeout};
use steadfast_tests::probe::{Event, EventKind};
use tokio::time::sleep;

use crate::support::{Agent, Stage, kill_unseen, ms, quick, text, until};

#[tokio::test]
async fn d04_a_call_that_timed_out_is_cancelled_before_it_is_repeated_stdio() {
    for (tool, calls) in [("w", 1), ("i", 3)] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
        let stack = quick()
            .with_timeout(timeout::Settings::new().with_read(ms(300)))
            .with_retry(retry::Settings::new().with_max_retries(2));
        let agent = Agent::new(lease, stack);

        let slow = agent
            .call(tool, json!({"tag": "slow", "delay_ms": 60_000}))
            .await;

        let failure = slow.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout, "{tool}: {failure}");
        assert_eq!(failure.phase(), Some(Phase::Read), "{tool}: {failure}");
        assert_eq!(failure.attempts(), calls, "{tool}: {failure}");
        let cancels = |events: &[Event]| events.iter().filter(|e| is_cancel(e)).count();
        let calls = calls as usize;
        let events = stage.events_with(|events| cancels(events) >= calls).await;
        assert_eq!(in_turn(&events), calls, "{tool}: {events:#?}");
        assert_eq!(stage.executed("slow"), calls, "{tool}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn d05_what_the_server_answered_is_never_repeated_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());

    for tool in ["w", "r", "i"] {
        let tag = format!("{tool} is_error");
        let told = agent.call(tool, json!({"tag": tag, "is_error": "no such file"}));
        let answer = told.await.unwrap();
        assert!(answer.is_live());
        assert_eq!(answer.value.is_error, Some(true));
        assert_eq!(text(&answer.value), "no such file");
        assert_eq!(stage.executed(&tag), 1, "{tag}");

        for code in [-32602, -32603] {
            let tag = format!("{tool} {code}");
            let fault = json!({"tag": tag, "rpc_error": code, "rpc_message": "seven is odd"});
            let failure = agent.call(tool, fault).await.unwrap_err();
            assert_eq!(failure.class(), Class::Answered, "{tag}: {failure}");
            assert_eq!(failure.attempts(), 1, "{tag}: {failure}");
            assert!(failure.to_string().contains("seven is odd"), "{failure}");
            assert_eq!(stage.executed(&tag), 1, "{tag}");
        }
    }
    assert_eq!(agent.circuit(), Some(State::Closed), "the server is alive");
    assert_eq!(stage.started().len(), 1, "it was not started anew");
    stage.end(pool).await;
}

#[tokio::test]
async fn d08_a_call_behind_a_stuck_pipe_is_sent_once_on_the_next_connection_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());

    // While it runs, the server reads nothing: the next call does not fit into the pipe.
    let written = agent.begin(
        "w",
        json!({"tag": "written", "stall": true, "blocking": true}),
    );
    stage.executed_soon("written").await;
    let torn = agent.begin("w", json!({"tag": "torn", "echo": "x".repeat(1 << 20)}));
    assert!(until(|| spy.count("pending") == 2).await);
    // As much of it as goes in.
    sleep(ms(100)).await;
    let queued = agent.begin("w", json!({"tag": "queued"}));
    assert!(until(|| spy.count("pending") == 3).await);
    kill_unseen(stage.started()[0]);

    for (call, executed) in [("written", 1), ("torn", 0)] {
        let outcome = if call == "written" { &written } else { &torn };
        assert!(until(|| outcome.is_finished()).await, "{call} hangs");
        assert_eq!(stage.executed(call), executed, "{call}");
    }
    assert_eq!(written.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert_eq!(torn.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert!(queued.await.unwrap().unwrap().is_live());
    assert_eq!(sent_to(&stage, "queued"), [stage.started()[1]]);
    assert_eq!(stage.executed("queued"), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn a_call_that_waits_too_long_for_its_turn_was_not_sent_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let one_at_a_time = json!({"steadfast": {"max_in_flight": 1}});
    let config = stage.server_with(&json!({}), one_at_a_time);
    let stack = quick()
        .with_timeout(timeout::Settings::new().with_connect(ms(300)))
        .with_retry(retry::Settings::new().with_max_retries(0));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), stack);

    let first = agent.begin("w", json!({"tag": "first", "delay_ms": 1500}));
    stage.executed_soon("first").await;
    let waits = agent.call("w", json!({"tag": "waits"})).await;

    let failure = waits.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Held), "{failure}");
    assert!(!failure.may_have_run(), "{failure}");
    assert!(first.await.unwrap().unwrap().is_live());
    assert!(
        agent
            .call("w", json!({"tag": "next"}))
            .await
            .unwrap()
            .is_live()
    );
    assert!(sent_to(&stage, "waits").is_empty(), "it came all the same");
    stage.end(pool).await;
}

/// The processes that received a call of this tag.
fn sent_to(stage: &Stage, tag: &str) -> Vec<u32> {
    let events = stage.events();
    let calls = events
        .iter()
        .filter(|event| event.tag.as_deref() == Some(tag));
    calls.map(|event| event.pid).collect()
}

fn is_cancel(event: &Event) -> bool {
    event.kind == EventKind::Notice && event.method.as_deref() == Some("notifications/cancelled")
}

/// How many calls there were, if each was cancelled, once, before the next one came.
fn in_turn(events: &[Event]) -> usize {
    let mut live: Option<Value> = None;
    let mut calls = 0;
    for event in events {
        if event.method.as_deref() == Some("tools/call") {
            assert_eq!(live, None, "two calls are live at once");
            live = event.id.clone();
            calls += 1;
        } else if is_cancel(event) {
            assert_eq!(event.request_id, live, "another call is cancelled");
            live = None;
        }
    }
    assert_eq!(live, None, "the last one was not cancelled");
    calls
}
