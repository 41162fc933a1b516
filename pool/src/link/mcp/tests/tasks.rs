use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use steadfast_classify::{Class, Failure, Limits, mcp::ServerError};
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

use super::{Script, millis, pool, server, tool};
use crate::{Lease, TaskEnded};

/// How the one tool of a server works as a task.
#[derive(Clone)]
struct Plan {
    interval: Value,
    ttl: Value,
    works: Duration,
    /// How it ends: members of what `tasks/get` gives.
    end: Value,
    /// Answers to the first questions about it, before any true one.
    first: Vec<Value>,
    /// How often the call is answered.
    told: usize,
}

/// A server whose tool is a task by this plan, and the moments at which it was asked.
fn tasks(plan: &Plan) -> Script {
    let (plan, asked) = (plan.clone(), AtomicU64::new(0));
    let begun: Arc<std::sync::Mutex<Option<Instant>>> = Arc::default();
    Script::new(json!({"tools": {}}), move |method, _| {
        let mut begun = begun.lock().expect("no test panics under it");
        let answer = match method {
            "tools/list" => json!({"tools": [tool("w")]}),
            "tools/call" => {
                assert!(begun.replace(Instant::now()).is_none(), "begun twice");
                plan.task(&json!({"resultType": "task", "status": "working"}))
            }
            "tasks/get" => {
                let n = asked.fetch_add(1, Ordering::Relaxed);
                let first = usize::try_from(n).ok().and_then(|n| plan.first.get(n));
                let ran = begun.expect("it was begun").elapsed();
                match first {
                    Some(Value::Null) => return Vec::new(),
                    Some(first) => first.clone(),
                    None if ran >= plan.works => plan.task(&plan.end),
                    None => plan.task(&json!({"status": "working"})),
                }
            }
            "tasks/cancel" => json!({"resultType": "complete"}),
            _ => return Vec::new(),
        };
        // Long enough that a caller can leave while it is begun.
        let (after, times) = match method {
            "tools/call" => (20, plan.told),
            _ => (1, 1),
        };
        vec![(millis(after), answer); times]
    })
}

// === impl Plan ===

impl Plan {
    fn done(interval: Value, works: Duration) -> Self {
        let result = json!({"content": [{"type": "text", "text": "built"}]});
        Self {
            interval,
            ttl: Value::Null,
            works,
            end: json!({"status": "completed", "result": result}),
            first: Vec::new(),
            told: 1,
        }
    }

    fn task(&self, more: &Value) -> Value {
        let mut task = json!({"taskId": "t-1", "createdAt": "now", "lastUpdatedAt": "now",
            "ttlMs": self.ttl, "pollIntervalMs": self.interval});
        let more = more.as_object().expect("an object").clone();
        task.as_object_mut().expect("an object").extend(more);
        task
    }
}

/// One call of a server with this plan: what came of it, and how long it took.
async fn run(plan: &Plan) -> (Script, Result<CallToolResult, Failure>, Duration) {
    let script = tasks(plan);
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");
    let begun = Instant::now();
    let call = lease.tool("w");
    let outcome = timeout(Duration::from_secs(3_600), lease.clone().oneshot(call));
    let outcome = outcome.await.expect("it ends");
    let took = begun.elapsed();
    // What is still on its way arrives.
    sleep(millis(100)).await;
    (script, outcome, took)
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().map_or("", |text| &text.text)
}

#[tokio::test(start_paused = true)]
async fn o03_a_task_is_asked_about_at_the_servers_interval_within_bounds() {
    for (interval, works, asked, took) in [
        (json!(500), 1_600, 4, 2_000),
        (json!(0), 1_050, 11, 1_100),
        (json!(600_000), 90_000, 2, 120_000),
        (Value::Null, 2_500, 3, 3_000),
    ] {
        let plan = Plan::done(interval.clone(), millis(works));
        let (script, outcome, ended) = run(&plan).await;

        assert_eq!(text(&outcome.expect("it is built")), "built");
        assert_eq!(script.received("tasks/get").len(), asked, "{interval}");
        assert_eq!(script.received("tools/call").len(), 1);
        let late = ended.saturating_sub(millis(took));
        assert!(late < millis(50), "{interval}: {ended:?}");
        assert!(script.received("tasks/cancel").is_empty(), "it has ended");
    }
}

#[tokio::test(start_paused = true)]
async fn task_whose_beginning_is_told_twice_goes_on() {
    let mut plan = Plan::done(json!(500), millis(1_600));
    plan.told = 2;

    let (script, outcome, _) = run(&plan).await;

    assert_eq!(text(&outcome.expect("it is built")), "built");
    assert!(script.received("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn o03_a_task_that_outlives_its_time_has_expired() {
    let mut plan = Plan::done(json!(500), millis(5_000));
    plan.ttl = json!(2_000);

    let (script, outcome, took) = run(&plan).await;

    let failure = outcome.expect_err("it expired");
    assert!(matches!(failure.find_source(), Some(TaskEnded::Expired)));
    assert_eq!(failure.class(), Class::Answered);
    assert!(failure.may_have_run());
    assert!(took >= millis(2_000) && took < millis(2_050), "{took:?}");
    assert_eq!(script.received("tasks/cancel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn o03_a_task_that_the_server_forgot_is_a_typed_end() {
    let mut plan = Plan::done(json!(100), millis(5_000));
    plan.first = vec![json!({"error": {"code": -32602, "message": "unknown task"}})];

    let (script, outcome, _) = run(&plan).await;

    let failure = outcome.expect_err("it is unknown");
    assert!(matches!(failure.find_source(), Some(TaskEnded::Unknown)));
    assert_eq!(failure.class(), Class::Unknown);
    assert!(failure.may_have_run());
    assert_eq!(script.received("tasks/get").len(), 1);
    assert!(
        script.received("tasks/cancel").is_empty(),
        "there is nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn o03_a_question_that_was_lost_is_asked_again() {
    let mut plan = Plan::done(json!(100), millis(200));
    let broken = json!({"error": {"code": -32603, "message": "try again"}});
    // Not answered at all, then answered by an error of the server's own.
    plan.first = vec![Value::Null, broken.clone(), broken];

    let (script, outcome, took) = run(&plan).await;

    assert_eq!(text(&outcome.expect("it is built")), "built");
    assert_eq!(script.received("tools/call").len(), 1);
    assert_eq!(script.received("tasks/get").len(), 4);
    assert!(took >= millis(10_000), "the lost one had 10 s: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_can_ask_about_is_given_up_and_called_off() {
    let mut plan = Plan::done(json!(100), millis(200));
    plan.first = vec![Value::Null; 1_000];

    let (script, outcome, took) = run(&plan).await;

    let failure = outcome.expect_err("nobody answers");
    let Some(TaskEnded::Lost(last)) = failure.find_source() else {
        panic!("{failure:?}");
    };
    assert_eq!(last.class(), Class::Timeout);
    assert_eq!(failure.class(), Class::Unknown);
    assert!(failure.may_have_run());
    assert!(took < millis(75_000), "{took:?}");
    assert_eq!(script.received("tasks/cancel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_task_is_the_end_of_its_call() {
    let error = json!({"code": -32000, "message": "disk full"});
    for (end, class) in [
        (json!({"status": "failed", "error": error}), Class::Answered),
        (json!({"status": "cancelled"}), Class::Cancelled),
        (
            json!({"status": "completed", "result": {"content": 5}}),
            Class::Unknown,
        ),
    ] {
        let mut plan = Plan::done(json!(100), millis(200));
        plan.end = end.clone();

        let (script, outcome, _) = run(&plan).await;

        let failure = outcome.expect_err("it has no result");
        assert_eq!(failure.class(), class, "{end}");
        assert!(failure.may_have_run(), "{end}");
        assert!(script.received("tasks/cancel").is_empty(), "{end}");
        match failure.find_source::<ServerError>() {
            Some(error) => assert_eq!(error.code(), -32000),
            None => assert!(failure.find_source::<TaskEnded>().is_some(), "{end}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o04_a_caller_that_leaves_leaves_no_poll_and_one_cancel() {
    // In each moment of its life: before it is sent, on its way, begun, between two
    // questions, in the middle of one.
    for after in 0..40 {
        let script = tasks(&Plan::done(json!(100), millis(60_000)));
        let pool = pool(&script);
        let session = pool.session("s");
        let lease = session.acquire(&server()).await.expect("it starts");

        let leaves = leave(&lease, millis(after * 7)).await;

        assert!(leaves.is_err(), "it is not done yet");
        let asked = script.received("tasks/get").len();
        sleep(millis(3_000)).await;
        assert_eq!(script.received("tasks/get").len(), asked, "{after}");
        let begun = script.received("tools/call").len();
        let cancelled = script.received("tasks/cancel");
        assert_eq!(cancelled.len(), begun, "{after}: one for what was begun");
        for cancel in cancelled {
            assert_eq!(cancel["params"]["taskId"], "t-1");
        }
    }
}

async fn leave(
    lease: &Lease,
    after: Duration,
) -> Result<Result<CallToolResult, Failure>, tokio::time::error::Elapsed> {
    timeout(after, lease.clone().oneshot(lease.tool("w"))).await
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_calls_its_tasks_off() {
    let script = tasks(&Plan::done(json!(100), millis(60_000)));
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");
    let call = tokio::spawn(lease.clone().oneshot(lease.tool("w")));
    sleep(millis(350)).await;

    session.close();

    let failure = call.await.expect("no panic").expect_err("it is closed");
    assert_eq!(failure.class(), Class::Cancelled);
    assert!(failure.may_have_run());
    sleep(millis(100)).await;
    assert_eq!(script.received("tasks/cancel").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_goes_on_when_its_connection_is_replaced() {
    let script = tasks(&Plan::done(json!(100), millis(5_000)));
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");
    let call = lease
        .tool("w")
        .with_limits(Limits::new().with_read(millis(20_000)));
    let call = tokio::spawn(lease.clone().oneshot(call));
    sleep(millis(1_000)).await;

    assert!(pool.restart("scripted", None).await[0].restarted);
    let answer = call.await.expect("no panic").expect("it is built");

    assert_eq!(text(&answer), "built");
    assert_eq!(script.received("initialize").len(), 2);
    assert_eq!(script.received("tools/call").len(), 1, "never begun anew");
    assert!(script.received("tasks/cancel").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_a_task_as_for_any_call() {
    let script = tasks(&Plan::done(json!(100), millis(2_000)));
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");
    let call = tokio::spawn(lease.clone().oneshot(lease.tool("w")));
    sleep(millis(150)).await;

    let report = pool.drain_all(millis(10_000)).await;

    let answer = call.await.expect("no panic").expect("it had the time");
    assert_eq!(text(&answer), "built");
    assert!(report.took < millis(4_000), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_closed_for_good_calls_its_tasks_off() {
    for how in ["drain", "retire"] {
        let script = tasks(&Plan::done(json!(10_000), millis(600_000)));
        let pool = pool(&script);
        let session = pool.session("s");
        let lease = session.acquire(&server()).await.expect("it starts");
        let call = tokio::spawn(lease.clone().oneshot(lease.tool("w")));
        // Between two questions, of which there is one in 10 s.
        sleep(millis(11_000)).await;

        match how {
            "drain" => drop(pool.drain_all(millis(4_000)).await),
            _ => pool.retire("scripted"),
        }

        sleep(millis(60_000)).await;
        let failure = call.await.expect("no panic").expect_err("it was cut off");
        assert!(failure.may_have_run(), "{how}");
        assert_eq!(script.received("tasks/cancel").len(), 1, "{how}");
    }
}
