//! What progress does to a call's limits, and to whose.

use serde_json::{Value, json};
use steadfast::{Class, Phase, timeout};

use crate::support::{Agent, Outcome, Stage, ms, quick};

#[tokio::test]
async fn c01_a_call_that_reports_progress_is_not_cut_off_stdio() {
    // The probe reports only where the request carries a token; nobody here asks for one.
    let outcome = run(
        ms(1000),
        true,
        json!({"delay_ms": 2500, "progress": {"every_ms": 100}}),
    )
    .await;

    assert!(outcome.unwrap().is_live());
}

#[tokio::test]
async fn c03_progress_extends_a_call_unless_that_is_switched_off_stdio() {
    let slow = || json!({"delay_ms": 2500, "progress": {"every_ms": 100}});

    let failure = run(ms(1000), false, slow()).await.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");

    let default = timeout::Settings::default().reset_on_progress;
    assert!(
        default,
        "the default is the one that the documentation states"
    );
    assert!(run(ms(1000), default, slow()).await.unwrap().is_live());
}

#[tokio::test]
async fn c04_progress_under_a_foreign_token_extends_no_call_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new().with_read(ms(700));
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick().with_timeout(limits));
    // Whose token is then known to the server as that of a call that has ended.
    assert!(agent.call("w", json!({})).await.unwrap().is_live());

    for token in ["invented", "finished"] {
        let strays = spy.count("stray_progress");
        let silent = agent.begin("w", json!({"delay_ms": 3000}));
        let told = json!({"delay_ms": 3000, "progress": {"every_ms": 100, "token": token}});
        let noisy = agent.call("w", told).await.unwrap_err();
        let silent = silent.await.unwrap().unwrap_err();

        for (what, failure) in [("noisy", noisy), ("silent", silent)] {
            assert_eq!(
                failure.class(),
                Class::Timeout,
                "{token}, {what}: {failure}"
            );
            assert_eq!(failure.phase(), Some(Phase::Read), "{token}, {what}");
        }
        assert!(
            spy.count("stray_progress") > strays,
            "{token}: none was dropped"
        );
    }
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    assert_eq!(stage.started().len(), 1, "the connection stays up");
    stage.end(pool).await;
}

/// One call of `w` under a stack with this read limit.
async fn run(read: std::time::Duration, reset: bool, arguments: Value) -> Outcome {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new()
        .with_read(read)
        .with_reset_on_progress(reset);
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();

    let outcome = Agent::new(lease, quick().with_timeout(limits))
        .call("w", arguments)
        .await;

    stage.end(pool).await;
    outcome
}
