//! Calls that a server runs as tasks.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast::{
    Class, Limits, Session,
    pool::{Refused, TaskEnded, Unanswered},
    retry, timeout,
};
use steadfast_tests::probe::Event;
use tokio::time::Instant;

use crate::support::{Agent, Outcome, Stage, ms, object, quick, secs, text, until};

/// An agent of a session of its own at a server with these knobs.
async fn agent(session: &Session, stage: &Stage, knobs: Value) -> Agent {
    let lease = session.acquire(&stage.server(&knobs)).await.unwrap();
    Agent::new(lease, quick())
}

/// A call of `w` with this tag that is a task.
async fn task(agent: &Agent, tag: &str, task: Value) -> Outcome {
    let arguments = json!({"tag": tag, "echo": "built", "task": task});
    agent.call("w", arguments).await
}

/// `rmcp` 3 has no `execution.taskSupport`: the tool's entry in the list is read on the wire.
/// Where the server has no tasks of the kind that `rmcp` speaks, the call would fail there.
#[tokio::test]
async fn o01_a_tool_that_has_to_be_a_task_is_not_called_where_there_are_none_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let list = json!({"task_support": {"w": "required"}});
    let knobs = json!({"list": list, "start": {"no_tasks": true}});
    let agent = agent(&session, &stage, knobs).await;

    let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();

    assert_eq!(
        failure.find_source(),
        Some(&Refused::NeedsTasks),
        "{failure}"
    );
    assert_eq!(failure.class(), Class::Rejected, "{failure}");
    assert!(!failure.may_have_run(), "{failure}");
    assert_eq!(stage.received("tools/call"), 0, "it was not sent");
    let answer = agent.call("r", json!({"tag": "r"})).await;
    assert!(answer.unwrap().is_live(), "the others can be called");
    stage.end(pool).await;
}

#[tokio::test]
async fn o03_a_task_is_asked_about_as_often_as_the_server_says_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(&session, &stage, json!({})).await;

    for (tag, interval, least) in [("slow", 500, ms(500)), ("zero", 0, ms(100))] {
        let before = stage.received("tasks/get");
        let work = json!({"work_ms": 1_200, "interval_ms": interval});
        assert!(task(&agent, tag, work).await.unwrap().is_live());

        let events = stage.events();
        let begun = events.iter().find(|e| e.tag.as_deref() == Some(tag));
        let polls = events.iter().filter(|e| is(e, "tasks/get")).skip(before);
        let mut moments = vec![begun.unwrap().at_us];
        moments.extend(polls.map(|poll| poll.at_us));
        assert!(moments.len() > 2, "{tag}");
        for pair in moments.windows(2) {
            let gap = Duration::from_micros(pair[1] - pair[0]);
            // The clock of tokio has whole milliseconds.
            assert!(gap + ms(2) >= least, "{tag}: asked again after {gap:?}");
        }
        assert_eq!(stage.executed(tag), 1);
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn o03_a_task_that_expires_or_is_forgotten_is_a_typed_end_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(&session, &stage, json!({})).await;

    let begun = Instant::now();
    let expires = json!({"work_ms": 60_000, "interval_ms": 500, "ttl_ms": 2_000});
    let failure = task(&agent, "expires", expires).await.unwrap_err();
    assert!(matches!(failure.find_source(), Some(TaskEnded::Expired)));
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(begun.elapsed() >= secs(2) && begun.elapsed() < secs(5));

    let unknown = json!({"work_ms": 60_000, "interval_ms": 100, "unknown": true});
    let failure = task(&agent, "unknown", unknown).await.unwrap_err();
    assert!(matches!(failure.find_source(), Some(TaskEnded::Unknown)));

    for (ends, class) in [("failed", Class::Answered), ("cancelled", Class::Cancelled)] {
        let work = json!({"work_ms": 50, "interval_ms": 100, "ends": ends});
        let failure = task(&agent, ends, work).await.unwrap_err();
        assert_eq!(failure.class(), class, "{failure}");
        assert!(failure.may_have_run(), "{failure}");
        assert_eq!(failure.attempts(), 1, "{failure}");
    }
    for tag in ["expires", "unknown", "failed", "cancelled"] {
        assert_eq!(stage.executed(tag), 1, "{tag}");
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn o04_a_task_that_asks_where_nobody_answers_ends_soon_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(&session, &stage, json!({})).await;
    let form = json!({"method": "elicitation/create", "params": {
        "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let work = json!({"interval_ms": 100, "asks": {"who": form}});

    let begun = Instant::now();
    let failure = task(&agent, "asks", work).await.unwrap_err();

    assert_eq!(
        failure.find_source(),
        Some(&Unanswered::Nobody),
        "{failure}"
    );
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(failure.may_have_run(), "{failure}");
    assert!(begun.elapsed() < secs(3));
    assert!(until(|| stage.received("tasks/cancel") == 1).await);
    assert_eq!(stage.executed("asks"), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn a_task_is_a_sign_of_life_for_as_long_as_it_is_asked_about_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let limits = timeout::Settings::new().with_read(ms(700));
    let never = retry::Settings::new().with_max_retries(0);
    let agent = Agent::new(lease, quick().with_timeout(limits).with_retry(never));

    // Neither the task nor the pause between two questions fits into the read limit.
    let work = json!({"work_ms": 2_500, "interval_ms": 1_000});
    assert!(task(&agent, "slow", work).await.unwrap().is_live());

    let hard = Limits::new().with_attempt(secs(1));
    let call = json!({"tag": "cut", "task": {"work_ms": 60_000, "interval_ms": 100}});
    let call = agent.lease.tool("w").with_arguments(object(call));
    let failure = agent.send(call.with_limits(hard)).await.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert!(until(|| stage.received("tasks/cancel") == 1).await);
    stage.end(pool).await;
}

fn is(event: &Event, method: &str) -> bool {
    event.method.as_deref() == Some(method)
}

/// Calls have taken all places on the connection; a task is asked about all the same.
#[tokio::test]
async fn a_task_is_not_lost_behind_other_calls_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let one = json!({"steadfast": {"max_in_flight": 1}});
    let config = stage.server_with(&json!({}), one);
    let lease = session.acquire(&config).await.unwrap();
    let agent = Agent::new(lease, quick());
    let work = json!({"work_ms": 300, "interval_ms": 100});
    let call = json!({"tag": "task", "echo": "built", "task": work});
    let task = agent.begin("w", call);
    assert!(until(|| stage.received("tasks/get") > 0).await);

    let slow = agent.begin("w", json!({"tag": "slow", "delay_ms": 2_500}));
    let answer = task.await.unwrap().unwrap();

    assert_eq!(text(&answer.value), "built");
    assert!(!slow.is_finished(), "it did not wait for the other call");
    assert!(slow.await.unwrap().unwrap().is_live());
    stage.end(pool).await;
}
