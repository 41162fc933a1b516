//! Which limit ends what, and what it leaves alone.

use serde_json::json;
use steadfast::{Class, Limits, Phase, pool::Status, retry, timeout};
use tokio::time::Instant;

use crate::support::{Agent, Stage, gone, ms, object, quick, secs, text, until};

#[tokio::test]
async fn b01_starting_and_calling_have_limits_of_their_own_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new()
        .with_connect(secs(1))
        .with_read(secs(5));
    let stack = || quick().with_timeout(limits).with_retry(once());

    let slow_tool = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(slow_tool, stack());
    let answer = agent.call("w", json!({"delay_ms": 1500})).await;
    assert!(answer.unwrap().is_live());

    let slow_start = stage.server_with(
        &json!({"start": {"delay_ms": 4000}}),
        json!({"discoveryTimeoutMs": 1000}),
    );
    let begun = Instant::now();
    let agent = Agent::new(session.lease(&slow_start).unwrap(), stack());
    let failure = agent.call("w", json!({})).await.unwrap_err();

    let took = begun.elapsed();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(took >= secs(1) && took < ms(3500), "{took:?}");
    gone(stage.started().into_iter().skip(1)).await;
    stage.end(pool).await;
}

#[tokio::test]
async fn b02_a_cold_start_has_longer_than_a_call_may_take_to_connect_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new().with_connect(ms(300));
    let cold_once = json!({
        "start": {"delay_ms": 2000},
        "later": {"after_starts": 1, "knobs": {}},
    });

    let cut_off = stage.server_with(&cold_once, json!({"discoveryTimeoutMs": 500}));
    let agent = Agent::new(
        session.lease(&cut_off).unwrap(),
        quick().with_timeout(limits),
    );
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    let [cold, warm] = stage.started()[..] else {
        panic!("the next attempt tries again: {:?}", stage.started());
    };
    gone([cold]).await;

    let awaited = stage.server(&json!({"start": {"delay_ms": 1000}}));
    let agent = Agent::new(
        session.lease(&awaited).unwrap(),
        quick().with_timeout(limits),
    );
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    assert_eq!(stage.started().len(), 3);
    assert_ne!(stage.started()[2], warm);
    stage.end(pool).await;
}

#[tokio::test]
async fn b06_a_call_that_times_out_leaves_its_connection_alone_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = stage.server(&json!({}));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let entry = || pool.snapshot().servers["probe"].entry_summary[0].clone();
    let pid = entry().pid;

    let fine = agent.begin(
        "w",
        json!({"tag": "fine", "delay_ms": 1000, "echo": "fine"}),
    );
    let slow = agent
        .lease
        .tool("w")
        .with_arguments(object(json!({"tag": "slow", "delay_ms": 3000})))
        .with_limits(Limits::new().with_read(ms(300)));
    let failure = agent.send(slow).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");
    assert_eq!(text(&fine.await.unwrap().unwrap().value), "fine");
    assert_eq!((entry().pid, entry().status), (pid, Status::Connected));
    assert_eq!(stage.started().len(), 1, "it was started once");
    assert_eq!(stage.received("tools/list"), 1, "it was listed once");
    stage.end(pool).await;
}

#[tokio::test]
async fn b07_an_answer_that_comes_too_late_disturbs_no_other_call_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let config = stage.server(&json!({"call": {"on_cancel": "ignore"}}));
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let during = agent.begin("w", json!({"delay_ms": 1200, "echo": "during"}));
    let late = agent
        .lease
        .tool("w")
        .with_arguments(object(json!({"delay_ms": 600, "echo": "late"})))
        .with_limits(Limits::new().with_read(ms(200)));
    let failure = agent.send(late).await.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(spy.count("late_answers"), 0, "it has not come yet");

    assert!(until(|| spy.count("late_answers") == 1).await);
    assert!(!during.is_finished(), "it came in the middle");
    assert_eq!(text(&during.await.unwrap().unwrap().value), "during");
    for number in 0..20 {
        let answer = agent.call("w", json!({"echo": number})).await.unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }
    assert_eq!(spy.count("late_answers"), 1);
    assert_eq!(stage.started().len(), 1);
    stage.end(pool).await;
}

fn once() -> retry::Settings {
    retry::Settings::new().with_max_retries(0)
}
