//! Versions of the protocol.

use serde_json::{Value, json};
use steadfast::{Class, Phase, pool::VersionMismatch};
use steadfast_tests::probe::EventKind;

use crate::support::{Agent, Stage, gone, quick};

#[tokio::test]
async fn p01_older_versions_are_spoken_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let config = stage.server(&json!({"start": {"version": version}}));

        let lease = session.acquire(&config).await.unwrap();

        let agent = Agent::new(lease, quick());
        let answer = agent.call("w", json!({"tag": version})).await.unwrap();
        assert!(answer.is_live());
        assert_eq!(stage.executed(version), 1);
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn p01_a_version_that_nobody_knows_ends_the_server_and_is_not_tried_again_stdio() {
    let unknown = json!({"start": {"version": "2099-01-01"}});
    let named = refused_once(&unknown).await;
    assert_eq!(named.as_deref(), Some("2099-01-01"));
}

#[tokio::test]
async fn p01_no_version_ends_the_server_and_is_not_tried_again_stdio() {
    refused_once(&json!({"start": {"no_version": true}})).await;
}

/// A stack that repeats what may be repeated makes one attempt. Returns the version named.
async fn refused_once(knobs: &Value) -> Option<String> {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.lease(&stage.server(knobs)).unwrap();
    let agent = Agent::new(lease, quick());

    let failure = agent.call("r", json!({})).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect));
    assert!(failure.is_permanent(), "{failure}");
    assert_eq!(failure.attempts(), 1);
    assert!(failure.to_string().contains("version"), "{failure}");
    let started = stage.pids(EventKind::Start);
    assert_eq!(started.len(), 1);
    gone(started).await;
    stage.end(pool).await;
    let mismatch = failure.find_source::<VersionMismatch>();
    mismatch.map(|mismatch| mismatch.theirs.to_string())
}
