//! Which limit ends what, and what progress does to it.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast::{Class, Limits, Phase, pool::Status, retry, timeout};
use tokio::time::Instant;

use super::Over;
use crate::support::{Agent, Outcome, Stage, gone, ms, object, quick, secs, text, until};

pub(crate) async fn b01_starting_and_calling_have_limits_of_their_own(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new()
        .with_connect(secs(1))
        .with_read(secs(5));
    let once = retry::Settings::new().with_max_retries(0);
    let stack = || quick().with_timeout(limits).with_retry(once);

    let slow_tool = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&slow_tool).await.unwrap(), stack());
    let answer = agent.call("w", json!({"delay_ms": 1500})).await;
    assert!(answer.unwrap().is_live());

    let slow = json!({"start": {"delay_ms": 4000}});
    let slow_start = over.builder(&stage, &slow).await;
    let slow_start = slow_start.discovery_timeout(secs(1)).build().unwrap();
    let begun = Instant::now();
    let agent = Agent::new(session.lease(&slow_start).unwrap(), stack());
    let failure = agent.call("w", json!({"tag": "never"})).await.unwrap_err();

    let took = begun.elapsed();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    assert!(took >= secs(1) && took < ms(3500), "{took:?}");
    assert_eq!(stage.executed("never"), 0);
    if over == Over::Stdio {
        gone(stage.started().into_iter().skip(1)).await;
    }
    stage.end(pool).await;
}

pub(crate) async fn b06_a_call_that_times_out_leaves_its_connection_alone(over: Over) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = over.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let entry = || pool.snapshot().servers["probe"].entry_summary[0].clone();
    let pid = entry().pid;
    assert_eq!(pid.is_some(), over == Over::Stdio);

    let fine = json!({"tag": "fine", "delay_ms": 1000, "echo": "fine"});
    let fine = agent.begin("w", fine);
    let slow = agent
        .lease
        .tool("w")
        .with_arguments(object(json!({"tag": "slow", "delay_ms": 3000})))
        .with_limits(Limits::new().with_read(ms(300)));
    let failure = agent.send(slow).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");
    assert_eq!(text(&fine.await.unwrap().unwrap().value), "fine");
    assert_eq!((entry().status, entry().pid), (Status::Connected, pid));
    assert_eq!(stage.received("initialize"), 1, "it was connected once");
    assert_eq!(stage.received("tools/list"), 1, "it was listed once");
    stage.end(pool).await;
}

pub(crate) async fn b07_an_answer_that_comes_too_late_disturbs_no_other_call(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let stubborn = json!({"call": {"on_cancel": "ignore"}});
    let config = over.server(&stage, &stubborn).await;
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

    let comes = u64::from(over.has_one_connection());
    assert!(until(|| spy.count("late_answers") == comes).await);
    assert!(!during.is_finished(), "it came in the middle");
    assert_eq!(text(&during.await.unwrap().unwrap().value), "during");
    for number in 0..20 {
        let answer = agent.call("w", json!({"echo": number})).await.unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }
    assert_eq!(spy.count("late_answers"), comes);
    assert_eq!(stage.received("initialize"), 1);
    stage.end(pool).await;
}

pub(crate) async fn c01_a_call_that_reports_progress_is_not_cut_off(over: Over) {
    // The probe reports only where the request carries a token; nobody here asks for one.
    let slow = json!({"delay_ms": 2500, "progress": {"every_ms": 100}});

    let outcome = run(over, ms(1000), true, slow).await;

    assert!(outcome.unwrap().is_live());
}

pub(crate) async fn c03_progress_extends_a_call_unless_that_is_switched_off(over: Over) {
    let slow = || json!({"delay_ms": 2500, "progress": {"every_ms": 100}});

    let failure = run(over, ms(1000), false, slow()).await.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");

    let default = timeout::Settings::default().reset_on_progress;
    assert!(default, "it is what the documentation states");
    assert!(
        run(over, ms(1000), default, slow())
            .await
            .unwrap()
            .is_live()
    );
}

pub(crate) async fn c04_progress_under_a_foreign_token_extends_no_call(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new().with_read(ms(700));
    let config = over.server(&stage, &json!({})).await;
    let lease = session.acquire(&config).await.unwrap();
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
            let (class, phase) = (failure.class(), failure.phase());
            assert_eq!(class, Class::Timeout, "{token}, {what}: {failure}");
            assert_eq!(phase, Some(Phase::Read), "{token}, {what}");
        }
        let dropped = spy.count("stray_progress") > strays;
        assert!(dropped, "{token}: none was dropped");
    }
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    assert_eq!(stage.received("initialize"), 1, "the connection stays up");
    stage.end(pool).await;
}

/// One call of `w` under a stack with this read limit.
async fn run(over: Over, read: Duration, reset: bool, arguments: Value) -> Outcome {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let limits = timeout::Settings::new()
        .with_read(read)
        .with_reset_on_progress(reset);
    let config = over.server(&stage, &json!({})).await;
    let lease = session.acquire(&config).await.unwrap();

    let outcome = Agent::new(lease, quick().with_timeout(limits))
        .call("w", arguments)
        .await;

    stage.end(pool).await;
    outcome
}
