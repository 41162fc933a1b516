use serde_json::{Value, json};
use steadfast_classify::{Call as _, Failure};
use tokio::time::timeout;
use tower::{Service as _, ServiceExt as _};

use super::{Script, millis, pool, server, tool};
use crate::{Lease, Progress, ToolCall};

/// Tells as many steps as it is asked for, 10 ms apart, then answers; and tells one more
/// under each of the tokens that nobody has, and one of its own after the answer.
fn stepping() -> Script {
    Script::new(json!({"tools": {}}), |method, params| match method {
        "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
        "tools/call" => {
            let steps = params["arguments"]["steps"].as_u64().unwrap_or(0);
            let own = &params["_meta"]["progressToken"];
            let told = (1..=steps).map(|n| (millis(n * 10), step(own, n)));
            let strays = [json!("invented"), json!(9_999)].map(|t| (millis(5), step(&t, 77)));
            let end = millis(steps * 10 + 10);
            let answer = json!({"content": [{"type": "text", "text": "done"}]});
            told.chain(strays)
                .chain([(end, answer), (end + millis(10), step(own, 88))])
                .collect()
        }
        _ => Vec::new(),
    })
}

fn step(token: &Value, n: u64) -> Value {
    json!({"method": "notifications/progress",
        "params": {"progressToken": token, "progress": n, "total": 100, "message": "works"}})
}

fn call(lease: &Lease, steps: u64) -> ToolCall {
    let arguments = json!({"steps": steps});
    let arguments = arguments.as_object().expect("an object").clone();
    lease.tool("w").with_arguments(arguments)
}

/// All that comes until the end, which comes soon.
async fn all(mut stream: crate::ProgressStream) -> Vec<Progress> {
    let read = async {
        let mut all = Vec::new();
        while let Some(progress) = stream.next().await {
            all.push(progress);
        }
        all
    };
    timeout(millis(10_000), read)
        .await
        .expect("the stream ends with its call")
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_call_comes_to_whoever_made_it_and_to_nobody_else() {
    let script = stepping();
    let pool = pool(&script);
    let (one, other) = (pool.session("one"), pool.session("other"));
    let mine = one.acquire(&server()).await.expect("it starts");
    let theirs = other.acquire(&server()).await.expect("it is there");
    let (short, short_steps) = call(&mine, 3).with_progress();
    let (long, long_steps) = call(&theirs, 9).with_progress();

    let (short, long) = futures::join!(mine.oneshot(short), theirs.oneshot(long));

    assert!(short.is_ok() && long.is_ok());
    for (stream, steps) in [(short_steps, 3), (long_steps, 9)] {
        let told: Vec<_> = all(stream).await;
        let numbers: Vec<_> = told.iter().map(|step| step.progress).collect();
        let want: Vec<_> = (1..=steps).map(|n| Some(f64::from(n))).collect();
        assert_eq!(numbers, want);
        assert_eq!(told[0].total, Some(100.0));
        assert_eq!(told[0].message.as_deref(), Some("works"));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_that_nobody_reads_is_dropped_and_counted() {
    let script = stepping();
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");
    let (call, stream) = call(&lease, 1_000).with_progress();

    let answer = lease.oneshot(call).await;

    assert!(answer.is_ok(), "an unread stream holds nothing up");
    assert_eq!(stream.missed(), 1_000 - 16);
    let kept: Vec<_> = all(stream).await.iter().map(|p| p.progress).collect();
    assert_eq!(kept.len(), 16);
    assert_eq!(kept.last(), Some(&Some(1_000.0)), "the latest is there");
}

#[tokio::test(start_paused = true)]
async fn attempts_of_one_call_report_into_one_stream() {
    let script = stepping();
    let pool = pool(&script);
    let session = pool.session("s");
    let mut lease = session.acquire(&server()).await.expect("it starts");
    let (mut first, stream) = call(&lease, 2).with_progress();
    let mut second = first.clone();
    for (number, call) in [(1, &mut first), (2, &mut second)] {
        let context = call.context_mut().expect("it has one");
        context.set_attempt(number);
    }

    let mut attempt = lease.call(first);
    let cut_off: Result<Result<_, Failure>, _> = timeout(millis(15), &mut attempt).await;
    assert!(cut_off.is_err());
    drop(attempt);
    let answer = lease.oneshot(second).await;

    assert!(answer.is_ok());
    let told = all(stream).await;
    let told: Vec<_> = told.iter().map(|p| (p.attempt, p.progress)).collect();
    assert_eq!(
        told,
        [(1, Some(1.0)), (2, Some(1.0)), (2, Some(2.0))],
        "nothing of an attempt that was given up"
    );
}
