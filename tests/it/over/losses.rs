//! What becomes of calls when their connection is lost.

use std::num::NonZeroU32;

use serde_json::json;
use steadfast::{
    Class, Phase,
    pool::Status,
    retry::{self, Backoff, Jitter},
    timeout,
};
use tokio::time::{Instant, sleep};

use super::Over;
use crate::support::{Agent, SOON, Stage, ms, quick, text, until};

pub(crate) async fn a01_every_call_in_flight_ends_when_its_server_goes(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let waits = agent.begin("w", json!({"tag": "waits", "stall": true}));
    stage.executed_soon("waits").await;
    let dies = agent.call("w", json!({"tag": "dies", "exit_after": 137}));
    let (dies, waits) = tokio::join!(dies, waits);

    for (tag, outcome) in [("dies", dies), ("waits", waits.unwrap())] {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class(), Class::Unknown, "{tag}: {failure}");
        assert!(failure.may_have_run(), "{tag}: {failure}");
        assert_eq!(failure.attempts(), 1, "{tag}: {failure}");
        assert_eq!(stage.executed(tag), 1, "{tag}");
        if over == Over::Stdio {
            let told = failure.to_string();
            assert!(told.contains(": exited with status 137"), "{tag}: {told}");
        }
    }
    let entry = || pool.snapshot().servers["probe"].entry_summary[0].clone();
    assert!(until(|| entry().status == Status::Idle).await);
    assert_eq!(entry().pid, None);
    assert_eq!(stage.received("initialize"), 1, "nobody asked for another");
    stage.end(pool).await;
}

pub(crate) async fn d01_a_loss_after_execution_is_never_repeated(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let three = retry::Settings::new().with_max_retries(3);
    let agent = Agent::new(
        session.acquire(&config).await.unwrap(),
        quick().with_retry(three),
    );

    let lost = agent.call("w", json!({"tag": "lost", "exit_after": 1}));

    let failure = lost.await.unwrap_err();
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    assert!(failure.may_have_run(), "{failure}");
    assert_eq!(stage.executed("lost"), 1);
    let next = agent.call("w", json!({"tag": "next"})).await.unwrap();
    assert!(next.is_live());
    assert_eq!(
        (stage.executed("next"), stage.received("initialize")),
        (1, 2)
    );
    stage.end(pool).await;
}

pub(crate) async fn d02_what_is_harmless_is_repeated_on_a_new_connection(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let two = retry::Settings::new()
        .with_backoff(Backoff::new(ms(20), ms(100), Jitter::Additive(0.2)).unwrap())
        .with_max_retries(2);
    let stack = quick().with_retry(two).without_breaker();
    let agent = Agent::new(session.acquire(&config).await.unwrap(), stack);

    for tool in ["r", "i"] {
        let mut once = over.lost_once();
        once["tag"] = json!(tool);
        let answer = agent.call(tool, once).await.unwrap();
        assert!(answer.is_live(), "{tool}");
        assert_eq!(stage.executed(tool), 2, "{tool}");

        let tag = format!("{tool} always");
        let mut always = over.lost();
        always["tag"] = json!(tag);
        let begun = Instant::now();
        let failure = agent.call(tool, always).await.unwrap_err();
        assert!(begun.elapsed() < SOON, "{tool}");
        assert_eq!(failure.class(), Class::Unknown, "{tool}: {failure}");
        assert_eq!((failure.attempts(), stage.executed(&tag)), (3, 3), "{tool}");
    }
    stage.end(pool).await;
}

pub(crate) async fn d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection(
    over: Over,
) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let one_at_a_time = over.builder(&stage, &json!({})).await;
    let config = one_at_a_time.max_in_flight(NonZeroU32::MIN).build();
    let lease = session.acquire(&config.unwrap()).await.unwrap();
    let agent = Agent::new(lease, quick());

    let written = json!({"tag": "written", "delay_before_ms": 1000, "exit_after": 1});
    let written = agent.begin("w", written);
    assert!(until(|| stage.received("tools/call") == 1).await);
    let queued = agent.begin("w", json!({"tag": "queued"}));
    let calls = || pool.snapshot().servers["probe"].entry_summary[0].in_flight;
    assert!(until(|| calls() == 2).await);

    assert_eq!(written.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert!(queued.await.unwrap().unwrap().is_live());
    for (nth, tag) in ["written", "queued"].into_iter().enumerate() {
        let came_to = came_to(&stage, tag);
        assert_eq!(came_to.len(), 1, "{tag}");
        if over == Over::Stdio {
            assert_eq!(came_to[0], stage.started()[nth], "{tag}");
        }
    }
    assert_eq!(
        (stage.executed("written"), stage.executed("queued")),
        (1, 1)
    );
    assert_eq!(stage.received("initialize"), 2);
    stage.end(pool).await;
}

pub(crate) async fn d08_a_call_behind_a_stuck_connection_is_sent_once_on_the_next(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    // While it runs, the server reads nothing: the next call does not fit in between.
    let written = json!({"tag": "written", "blocking": true, "delay_ms": 1500, "exit_answered": 1});
    let written = agent.begin("w", written);
    stage.executed_soon("written").await;
    let large = "x".repeat(over.stuck_at());
    let torn = agent.begin("w", json!({"tag": "torn", "ask_params": large}));
    assert!(until(|| spy.count("pending") == 2).await);
    // As much of it as goes in.
    sleep(ms(100)).await;
    let queued = agent.begin("w", json!({"tag": "queued"}));
    assert!(until(|| spy.count("pending") == 3).await);

    // A reset may take the answer with it.
    if let Err(failure) = written.await.unwrap() {
        assert_eq!(failure.class(), Class::Unknown, "{failure}");
    }
    assert_eq!(torn.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert!(queued.await.unwrap().unwrap().is_live());
    let came = |tag| came_to(&stage, tag).len();
    assert_eq!((came("torn"), came("queued")), (0, 1));
    assert_eq!((stage.executed("torn"), stage.executed("queued")), (0, 1));
    stage.end(pool).await;
}

pub(crate) async fn a_call_that_cannot_be_written_in_time_was_not_sent(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let stack = quick()
        .with_timeout(timeout::Settings::new().with_connect(ms(300)))
        .with_retry(retry::Settings::new().with_max_retries(0));
    let config = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), stack);

    let busy = json!({"tag": "busy", "blocking": true, "delay_ms": 1500});
    let busy = agent.begin("w", busy);
    stage.executed_soon("busy").await;
    let large = json!({"tag": "large", "ask_params": "x".repeat(over.stuck_at())});
    let large = agent.begin("w", large);
    assert!(until(|| spy.count("pending") == 2).await);
    let waits = agent.call("w", json!({"tag": "waits"})).await;

    let failure = waits.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(!failure.may_have_run(), "{failure}");
    assert!(busy.await.unwrap().unwrap().is_live());
    assert!(large.await.unwrap().unwrap().is_live());
    let next = agent.call("w", json!({"echo": "next"})).await.unwrap();
    assert_eq!(text(&next.value), "next");
    assert!(came_to(&stage, "waits").is_empty(), "it came all the same");
    stage.end(pool).await;
}

/// The processes that received a call of this tag, once for each time.
fn came_to(stage: &Stage, tag: &str) -> Vec<u32> {
    let events = stage.events();
    let calls = events
        .iter()
        .filter(|event| event.tag.as_deref() == Some(tag));
    calls.map(|event| event.pid).collect()
}
