//! Our own limit on what runs at once is no fault of the server's.

use futures::future::join_all;
use serde_json::json;
use steadfast::{Class, Phase, circuit_breaker::State, retry, timeout};

use crate::support::{Agent, Stage, ms, quick};

#[tokio::test]
async fn calls_without_a_place_never_open_the_circuit_of_a_healthy_server_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let narrow = stage.server_with(&json!({}), json!({"steadfast": {"max_in_flight": 1}}));
    let stack = quick()
        .with_timeout(timeout::Settings::new().with_connect(ms(200)))
        .with_retry(retry::Settings::new().with_max_retries(0));
    let agent = Agent::new(session.acquire(&narrow).await.unwrap(), stack);
    let long = agent.begin("w", json!({"tag": "long", "delay_ms": 1500}));
    stage.executed_soon("long").await;

    // More than it takes in a row to open a circuit.
    let crowd = join_all((0..8).map(|_| agent.call("w", json!({"tag": "crowd"})))).await;

    for outcome in crowd {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert_eq!(failure.phase(), Some(Phase::Held), "{failure}");
    }
    assert_eq!(agent.circuit(), Some(State::Closed));
    long.await.unwrap().unwrap();
    agent.call("w", json!({"tag": "after"})).await.unwrap();
    assert_eq!(stage.executed("crowd"), 0);
    drop((agent, session));
    stage.end(pool).await;
}
