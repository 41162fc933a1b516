//! Calls that a server runs as tasks.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use steadfast::{
    Class, Limits, Session,
    pool::{Refused, Status, TaskEnded, Unanswered},
    retry, timeout,
};
use steadfast_tests::probe::Event;
use tokio::time::{Instant, sleep};

use crate::support::{Agent, Outcome, Stage, kill_unseen, ms, object, quick, secs, text, until};

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

#[tokio::test]
async fn o01_a_tool_runs_as_a_task_where_it_has_to_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let support = json!({"r": "required", "w": "optional", "i": "forbidden"});
    let list = json!({"task_support": support});
    let work = json!({"work_ms": 300, "interval_ms": 100});
    let tasks = json!({"list": list, "tools": {"r": {"task": work}, "w": {"task": work}}});
    let agent = agent(&session, &stage, tasks).await;

    for (tool, is_task) in [("r", true), ("w", true), ("i", false)] {
        let asked = stage.received("tasks/get");
        let answer = agent.call(tool, json!({"tag": tool, "echo": tool})).await;

        assert_eq!(text(&answer.unwrap().value), tool);
        assert_eq!(stage.executed(tool), 1, "{tool}");
        assert_eq!(stage.received("tasks/get") > asked, is_task, "{tool}");
    }
    assert_eq!(stage.received("tasks/cancel"), 0);
    stage.end(pool).await;
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
async fn a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(&session, &stage, json!({})).await;

    // The server exits in the middle of the third question, …
    let work = json!({"work_ms": 2_500, "interval_ms": 100, "exit_at_poll": 3});
    let call = json!({"tag": "task", "echo": "built", "task": work});
    let running = agent.begin("w", call);
    let pool = &pool;
    let connected = |starts| {
        let entry = pool.snapshot().servers["probe"].entry_summary[0].clone();
        entry.status == Status::Connected && stage.started().len() == starts
    };
    assert!(until(|| connected(2)).await);
    // … is killed between two, …
    sleep(ms(250)).await;
    kill_unseen(*stage.started().last().unwrap());
    assert!(until(|| connected(3)).await);
    // … and is restarted by whoever runs the pool.
    assert!(pool.restart("probe", None).await[0].restarted);

    let answer = running.await.unwrap().unwrap();
    assert_eq!(text(&answer.value), "built");
    assert_eq!(stage.executed("task"), 1);
    assert_eq!(stage.received("tools/call"), 1, "never begun anew");
    assert_eq!(stage.started().len(), 4);
    assert_eq!(stage.received("tasks/cancel"), 0);
    stage.end(pool.clone()).await;
}

#[tokio::test]
async fn a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(&session, &stage, json!({})).await;
    let work = json!({"work_ms": 60_000, "interval_ms": 100});

    for (number, after) in [0, 1, 2, 5, 50, 105, 150, 250, 310].into_iter().enumerate() {
        let call = json!({"tag": "left", "task": work});
        let call = agent.lease.tool("w").with_arguments(object(call));
        let limits = Limits::new().with_total(ms(after).max(Duration::from_micros(300)));
        // By its own deadline, and dropped from outside.
        if number % 2 == 0 {
            assert!(agent.send(call.with_limits(limits)).await.is_err());
        } else {
            let left = tokio::time::timeout(ms(after), agent.send(call)).await;
            assert!(left.is_err(), "it is not done yet");
        }
    }

    // Whatever was begun is called off, once each.
    let cancels = || stage.received("tasks/cancel");
    assert!(until(|| cancels() == stage.executed("left")).await);
    assert!(stage.executed("left") >= 5);
    let asked = stage.received("tasks/get");
    sleep(ms(500)).await;
    assert_eq!(stage.received("tasks/get"), asked, "nobody asks any more");
    let events = stage.events();
    let cancels = events.iter().filter(|event| is(event, "tasks/cancel"));
    let tasks: BTreeSet<_> = cancels.map(|event| event.name.as_deref()).collect();
    assert_eq!(tasks.len(), stage.executed("left"), "one for each");
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
