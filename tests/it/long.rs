//! Long calls beside ordinary ones.

use serde_json::json;
use steadfast::{Class, Phase, timeout};
use tokio::time::Instant;

use crate::support::{Agent, Stage, ms, object, quick, secs, text};

#[tokio::test]
async fn a_long_tool_has_limits_of_its_own_beside_ordinary_calls_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let steady = json!({"every_ms": 200});
    let knobs = json!({"tools": {"r": {"delay_ms": 3_000, "progress": steady}}});
    let long = json!({"steadfast": {"tools": {"r": {"long": true}}}});
    let config = stage.server_with(&knobs, long);
    let lease = session.acquire(&config).await.unwrap();
    let limits = timeout::Settings::new()
        .with_connect(secs(1))
        .with_read(ms(800))
        .with_attempt(ms(1_500));
    let agent = Agent::new(lease, quick().with_timeout(limits));

    let begun = Instant::now();
    let long = agent.begin("r", json!({"tag": "long", "echo": "built"}));
    stage.executed_soon("long").await;
    // The same server, the same connection: an ordinary call has its ordinary limits.
    let silent = agent.call("w", json!({"tag": "silent", "stall": true}));
    let failure = silent.await.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");
    let steady = json!({"tag": "cut", "delay_ms": 60_000, "progress": {"every_ms": 100}});
    let failure = agent.call("w", steady).await.unwrap_err();
    assert_eq!(failure.phase(), Some(Phase::Attempt), "{failure}");

    let answer = long.await.unwrap().unwrap();
    assert_eq!(text(&answer.value), "built");
    assert!(begun.elapsed() >= secs(3));
    assert_eq!(stage.started().len(), 1, "on one connection");
    stage.end(pool).await;
}

/// `r` only reads, so it would be repeated.
#[tokio::test]
async fn a_long_call_is_never_repeated_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let long = json!({"steadfast": {"tools": {"r": {"long": true}}}});
    let config = stage.server_with(&json!({}), long);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let failure = agent.call("r", json!({"tag": "by config", "exit_after": 1}));
    let failure = failure.await.unwrap_err();
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(stage.executed("by config"), 1);

    // By call, of a tool that is not long.
    let call = object(json!({"tag": "by call", "exit_after": 1}));
    let call = agent.lease.tool("i").with_arguments(call);
    let call = call.with_limits(timeout::long_task(secs(30)));
    let failure = agent.send(call).await.unwrap_err();
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(stage.executed("by call"), 1);

    let call = json!({"tag": "short", "exit_after": 1, "times": 1});
    assert!(agent.call("i", call).await.unwrap().is_live());
    assert_eq!(stage.executed("short"), 2, "others are");
    stage.end(pool).await;
}
