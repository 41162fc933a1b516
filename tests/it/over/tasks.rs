//! Calls that a server runs as tasks.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use steadfast::{Limits, Session, pool::Status};
use tokio::time::sleep;

use super::Over;
use crate::support::{Agent, Stage, kill_unseen, ms, object, quick, text, until};

pub(crate) async fn o01_a_tool_runs_as_a_task_where_it_has_to(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let support = json!({"r": "required", "w": "optional", "i": "forbidden"});
    let list = json!({"task_support": support});
    let work = json!({"work_ms": 300, "interval_ms": 100});
    let tasks = json!({"list": list, "tools": {"r": {"task": work}, "w": {"task": work}}});
    let agent = agent(over, &session, &stage, tasks).await;

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

pub(crate) async fn a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution(
    over: Over,
) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(over, &session, &stage, json!({})).await;

    // The server goes in the middle of the third question, …
    let work = json!({"work_ms": 2_500, "interval_ms": 100, "exit_at_poll": 3});
    let call = json!({"tag": "task", "echo": "built", "task": work});
    let running = agent.begin("w", call);
    let connected = async |times| {
        let status = || pool.snapshot().servers["probe"].entry_summary[0].status;
        let is = || status() == Status::Connected && stage.received("initialize") == times;
        assert!(until(is).await, "{times}");
    };
    let mut times = 2;
    connected(times).await;
    // … is killed between two, where it is a process, …
    if over == Over::Stdio {
        sleep(ms(250)).await;
        kill_unseen(*stage.started().last().unwrap());
        times += 1;
        connected(times).await;
    }
    // … and is restarted by whoever runs the pool.
    assert!(pool.restart("probe", None).await[0].restarted);
    times += 1;

    let answer = running.await.unwrap().unwrap();
    assert_eq!(text(&answer.value), "built");
    assert_eq!(stage.executed("task"), 1);
    assert_eq!(stage.received("tools/call"), 1, "never begun anew");
    assert_eq!(stage.received("initialize"), times);
    assert_eq!(stage.received("tasks/cancel"), 0);
    stage.end(pool).await;
}

pub(crate) async fn a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let agent = agent(over, &session, &stage, json!({})).await;
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
    let cancels = events
        .iter()
        .filter(|event| event.method.as_deref() == Some("tasks/cancel"));
    let tasks: BTreeSet<_> = cancels.map(|event| event.name.as_deref()).collect();
    assert_eq!(tasks.len(), stage.executed("left"), "one for each");
    stage.end(pool).await;
}

/// An agent of this session at a server with these knobs.
async fn agent(over: Over, session: &Session, stage: &Stage, knobs: Value) -> Agent {
    let config = over.server(stage, &knobs).await;
    Agent::new(session.acquire(&config).await.unwrap(), quick())
}
