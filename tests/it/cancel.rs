//! What a server is told of calls that nobody waits for any more.

use std::{cell::Cell, future::ready, time::Duration};

use futures::{StreamExt as _, stream};
use serde_json::json;
use steadfast::Class;
use tokio::time::{Instant, sleep};

use crate::support::{Agent, Stage, quick, text, until};

#[tokio::test]
async fn n01_a_handshake_that_is_given_up_is_not_cancelled_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let never = json!({"start": {"never": true}});
    let config = stage.server_with(&never, json!({"discoveryTimeoutMs": 500}));

    let failure = session.acquire(&config).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(stage.received("initialize"), stage.started().len());
    assert_eq!(stage.received("notifications/cancelled"), 0);
    stage.end(pool).await;
}

#[tokio::test]
async fn n04_a_cancel_that_crosses_its_answer_harms_no_call_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    for on_cancel in ["stop", "answer", "error", "ignore"] {
        let crosses = json!({"on_cancel": on_cancel, "answer_again": 1, "delay_ms": 3});
        let config = stage.server(&json!({"ledger": null, "call": crosses}));
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

        let begun = Instant::now();
        assert!(agent.call("w", json!({})).await.unwrap().is_live());
        let patience = Cell::new(begun.elapsed());
        let calls = stream::iter(0..250).map(|number| crossed(&agent, number, &patience));
        let answered = calls
            .buffer_unordered(8)
            .filter(|answered| ready(*answered));
        let answered = answered.count().await;

        assert!(
            (5..245).contains(&answered),
            "{on_cancel}: {answered} of 250 were answered"
        );
        for number in 0..20 {
            let echo = format!("later {number}");
            let answer = agent.call("w", json!({"echo": echo})).await.unwrap();
            assert_eq!(text(&answer.value), echo, "{on_cancel}");
        }
        assert!(until(|| spy.count("pending") == 0).await, "{on_cancel}");
    }
    let entries = pool.snapshot().servers["probe"].entry_summary.clone();
    let connected = entries.iter().filter(|entry| entry.pid.is_some()).count();
    assert_eq!((entries.len(), connected), (4, 4), "none was started anew");
    stage.end(pool).await;
}

/// One call that is dropped at about the time when its answer comes; whether that came.
/// `patience` is kept where half of the calls are answered.
async fn crossed(agent: &Agent, number: usize, patience: &Cell<Duration>) -> bool {
    let limit = patience.get();
    tokio::select! {
        answer = agent.call("w", json!({"echo": number})) => {
            assert_eq!(text(&answer.unwrap().value), number.to_string());
            patience.set(limit.mul_f64(0.95));
            true
        }
        () = sleep(limit) => {
            patience.set(limit.mul_f64(1.05));
            false
        }
    }
}
