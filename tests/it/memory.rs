//! That nothing a server does makes its client grow.

use futures::{StreamExt as _, stream};
use serde_json::json;
use steadfast::{Class, Limits};
use tokio::time::sleep;

use crate::{
    ALONE,
    support::{Agent, Stage, ms, object, quick, secs, text, until},
    usage::{children, descriptors, forget_peak, memory},
};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a08_a_server_that_floods_its_stderr_is_heard_and_does_not_cost_memory_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let chatty = json!({"wire": {"stderr_bytes": 10 * MIB}});
    let agent = Agent::new(
        session.acquire(&stage.server(&chatty)).await.unwrap(),
        quick(),
    );
    forget_peak();
    let (before, _) = memory();

    for number in 0..20 {
        let answer = agent.call("w", json!({"echo": number})).await.unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }

    let (_, peak) = memory();
    let grown = peak.saturating_sub(before);
    println!("a08: grew by {} KiB", grown / 1024);
    assert!(grown < 16 * MIB, "it grew by {grown} bytes");
    let failure = agent.call("w", json!({"exit_after": 3})).await.unwrap_err();
    let told = failure.to_string();
    assert!(told.contains(&"x".repeat(1000)), "the last words: {told}");
    assert!(told.len() < 20_000, "only the last ones: {}", told.len());
    stage.end(pool).await;
}

#[tokio::test]
async fn m04_a_line_without_end_does_not_cost_memory_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());
    forget_peak();
    let (before, _) = memory();

    for flood in ["stdout_line_bytes", "stderr_line_bytes"] {
        let floods = json!({"tag": flood, flood: 200 * MIB, "stall": true});
        let call = agent.lease.tool("w").with_arguments(object(floods));
        let pending = agent.send(call.with_limits(Limits::new().with_read(secs(2))));
        let second = agent.call("w", json!({"echo": "second"}));
        let (pending, second) = tokio::join!(pending, second);

        assert_eq!(pending.unwrap_err().class(), Class::Timeout, "{flood}");
        assert_eq!(text(&second.unwrap().value), "second", "{flood}");
    }

    let (_, peak) = memory();
    let grown = peak.saturating_sub(before);
    println!("m04: grew by {} KiB", grown / 1024);
    assert!(grown < 64 * MIB, "it grew by {grown} bytes");
    assert!(until(|| spy.count("oversized") == 1).await);
    let answer = agent.call("w", json!({"echo": "later"})).await.unwrap();
    assert_eq!(text(&answer.value), "later");
    assert_eq!(stage.started().len(), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn n03_calls_that_were_given_up_are_forgotten_stdio() {
    let _alone = ALONE.lock().await;
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let mute = json!({"ledger": null, "events": null, "call": {"stall": true}});
    let lease = session.acquire(&stage.server(&mute)).await.unwrap();
    let pid = pool.snapshot().servers["probe"].entry_summary[0].pid;
    // An open circuit would keep the calls from the server.
    let agent = Agent::new(lease, quick().without_breaker());

    let mut sizes = [0; 2];
    for size in &mut sizes {
        let calls = stream::iter(0..10_000).map(|number| given_up(&agent, number));
        calls.buffer_unordered(100).count().await;
        assert!(until(|| spy.count("pending") == 0).await);
        *size = memory().0;
    }

    let [half, whole] = sizes;
    let grown = whole.abs_diff(half);
    println!("n03: {} KiB between 10,000 and 20,000", grown / 1024);
    assert!(grown <= 5 * MIB, "from {half} to {whole} bytes");
    let entry = pool.snapshot().servers["probe"].entry_summary[0].clone();
    assert_eq!((entry.in_flight, entry.pid), (0, pid));
    stage.end(pool).await;
}

#[tokio::test]
async fn a_pool_that_was_drained_holds_no_descriptor_and_no_process() {
    let _alone = ALONE.lock().await;
    let mut counts = Vec::new();
    // What the runtime opens with the first process stays open for the next.
    for _ in 0..3 {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        for fault in [
            json!({}),
            json!({"exit_after": 1}),
            json!({"close_stdout": true}),
        ] {
            let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
            let _ = Agent::new(lease, quick()).call("r", fault).await;
        }
        stage.end(pool).await;
        drop(session);
        // The watchdog, too.
        assert!(until(|| children().is_empty()).await, "{:?}", children());
        counts.push(descriptors());
    }

    let last = counts[0];
    assert!(until(|| descriptors() <= last).await, "{counts:?}");
}

/// One call that is given up: by its own limit, or by being dropped.
async fn given_up(agent: &Agent, number: usize) {
    let call = agent.lease.tool("w");
    if number.is_multiple_of(2) {
        let call = call.with_limits(Limits::new().with_read(ms(2)));
        let failure = agent.send(call).await.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout, "{failure}");
    } else {
        tokio::select! {
            outcome = agent.send(call) => panic!("answered by a mute server: {outcome:?}"),
            () = sleep(ms(4)) => {}
        }
    }
}
