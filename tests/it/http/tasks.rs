//! Calls that a server runs as tasks, over HTTP.

use serde_json::{Value, json};
use steadfast::Class;
use tokio::time::sleep;

use crate::{
    place::Place,
    support::{ms, text, until},
};

/// Both lifecycles of the protocol: with a handshake and a session, and without either.
fn lifecycles() -> [(Value, Value); 2] {
    let stateless = json!({"lifecycle": "stateless"});
    let only = json!({"protocolVersion": "2026-07-28"});
    [(json!({}), json!({})), (stateless, only)]
}

async fn enter(start: Value) -> Place {
    let knobs = json!({"http": {}, "start": start});
    Place::with(&knobs, crate::support::pool_settings()).await
}

#[tokio::test]
async fn o03_a_question_that_is_refused_is_asked_again_http() {
    for (start, fields) in lifecycles() {
        let place = enter(start).await;
        let agent = place.agent(fields).await;
        place.faults(json!([{"on": ["tasks/get"], "skip": 1, "times": 2, "status": 503}]));

        let work = json!({"work_ms": 500, "interval_ms": 100});
        let call = json!({"tag": "task", "echo": "built", "task": work});
        let answer = agent.call("w", call).await.unwrap();

        assert_eq!(text(&answer.value), "built");
        assert_eq!(place.stage.executed("task"), 1);
        assert_eq!(place.requests("tools/call").len(), 1);
        assert!(place.requests("tasks/get").len() >= 4);
        assert!(place.requests("tasks/cancel").is_empty());
        place.end().await;
    }
}

#[tokio::test]
async fn a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution_http() {
    let place = enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    // The second question is lost with its connection, and the server is away for a while;
    // a later one finds that the session was forgotten.
    place.faults(json!([
        {"on": ["tasks/get"], "skip": 1, "times": 1, "cut": "reset", "outage_ms": 400},
        {"on": ["tasks/get"], "skip": 2, "times": 1, "status": 404},
    ]));

    let work = json!({"work_ms": 1_500, "interval_ms": 100});
    let call = json!({"tag": "task", "echo": "built", "task": work});
    let answer = agent.call("w", call).await.unwrap();

    assert_eq!(text(&answer.value), "built");
    assert_eq!(place.stage.executed("task"), 1);
    assert_eq!(place.requests("tools/call").len(), 1);
    assert_eq!(
        place.requests("initialize").len(),
        2,
        "it has a new session"
    );
    assert!(place.requests("tasks/cancel").is_empty());
    place.end().await;
}

#[tokio::test]
async fn a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel_http() {
    for (start, fields) in lifecycles() {
        let place = enter(start).await;
        let agent = place.agent(fields).await;
        let call = json!({"tag": "left", "task": {"work_ms": 60_000, "interval_ms": 100}});

        for after in [50, 105, 150, 220, 310] {
            let left = tokio::time::timeout(ms(after), agent.call("w", call.clone())).await;
            assert!(left.is_err(), "it is not done yet");
        }

        let cancels = || place.requests("tasks/cancel").len();
        assert!(until(|| cancels() == place.stage.executed("left")).await);
        let asked = place.requests("tasks/get").len();
        sleep(ms(400)).await;
        assert_eq!(place.requests("tasks/get").len(), asked);
        assert_eq!(place.stage.executed("left"), 5);
        assert_eq!(cancels(), 5, "one for each");
        place.end().await;
    }
}

#[tokio::test]
async fn a_session_that_is_closed_calls_its_tasks_off_http() {
    for (start, fields) in lifecycles() {
        let place = enter(start).await;
        let session = place.pool.session("closes");
        let lease = session.acquire(&place.config(fields)).await.unwrap();
        let agent = crate::support::Agent::new(lease, crate::support::quick());
        let call = json!({"tag": "left", "task": {"work_ms": 60_000, "interval_ms": 100}});
        let call = agent.begin("w", call);
        assert!(until(|| !place.requests("tasks/get").is_empty()).await);

        // Its connection is its own, and ends with it.
        session.close();

        let failure = call.await.unwrap().unwrap_err();
        assert_eq!(failure.class(), Class::Cancelled, "{failure}");
        assert!(failure.may_have_run(), "{failure}");
        assert!(until(|| place.requests("tasks/cancel").len() == 1).await);
        place.end().await;
    }
}
