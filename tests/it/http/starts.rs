//! Servers that cannot be reached at once, and what keeps a connection alive.

use serde_json::json;
use steadfast::{
    Class,
    pool::{Keepalive, Status},
    retry,
};
use steadfast_tests::probe::HttpProbe;
use tokio::time::{Instant, sleep};

use crate::{
    place::{Place, once, remote},
    support::{Agent, SOON, ms, pool_settings, quick, secs, text, until},
};

#[tokio::test]
async fn f06_a_502_at_the_start_is_waited_out_http() {
    let twice = json!({"on": ["initialize"], "times": 2, "status": 502, "body": "starting"});
    let place = Place::enter(json!({"faults": [twice]})).await;
    let lease = place.session.lease(&place.config(json!({}))).unwrap();
    let answer = Agent::new(lease, quick())
        .call("w", json!({"tag": "w"}))
        .await;
    assert!(answer.unwrap().is_live());
    assert_eq!(place.probe.received("initialize"), 3);
    assert_eq!(place.stage.executed("w"), 1);
    place.end().await;

    let always = json!({"on": ["initialize"], "status": 502, "body": "starting"});
    let place = Place::enter(json!({"faults": [always]})).await;
    let lease = place.session.lease(&place.config(json!({}))).unwrap();
    let agent = Agent::new(lease, quick().without_breaker());
    let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.attempts(), 4, "{failure}");
    for part in ["probe", "502"] {
        assert!(failure.to_string().contains(part), "{failure}");
    }
    let before = place.probe.received("initialize");
    let failed = place.session.acquire(&place.config(json!({}))).await;
    assert!(failed.unwrap_err().to_string().contains("502"));
    assert!(
        place.probe.received("initialize") > before,
        "it is tried again"
    );
    place.faults(json!([]));
    assert!(
        agent
            .call("w", json!({"tag": "w"}))
            .await
            .unwrap()
            .is_live()
    );
    place.end().await;
}

#[tokio::test]
async fn f07_a_ping_kills_no_healthy_server_http() {
    let keepalive = Keepalive::new(ms(200)).with_answer(ms(300));
    let settings = || pool_settings().with_keepalive(keepalive);

    // A server that works on one thing at a time.
    let place = Place::with(&json!({}), settings()).await;
    let agent = place.agent_with(json!({}), once()).await;
    let answer = agent
        .call(
            "w",
            json!({"blocking": true, "delay_ms": 2000, "echo": "done"}),
        )
        .await;
    assert_eq!(text(&answer.unwrap().value), "done");
    assert_eq!(
        (place.probe.received("initialize"), place.entry().restarts),
        (1, 0)
    );
    place.end().await;

    // A long list is not what the heart beats with.
    let place = Place::with(&json!({"list": {"extra": 2000}}), settings()).await;
    let _agent = place.agent(json!({})).await;
    assert!(until(|| place.probe.received("ping") >= 5).await);
    assert_eq!(place.probe.received("tools/list"), 1);
    for ping in place.requests("ping") {
        let headers: usize = ping
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        assert!(ping.body.len() + headers < 1024, "{ping:?}");
    }
    place.end().await;
}

#[tokio::test]
async fn f07_a_server_that_ignores_pings_is_not_restarted_for_it_http() {
    let keepalive = Keepalive::new(ms(200)).with_answer(ms(300));
    let settings = pool_settings().with_keepalive(keepalive);
    let place = Place::with(&json!({"start": {"ignore_ping": true}}), settings).await;
    let agent = place.agent_with(json!({}), once()).await;

    sleep(secs(2)).await;

    assert!(place.probe.received("ping") >= 1);
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    assert_eq!(
        (place.probe.received("initialize"), place.entry().restarts),
        (1, 0)
    );
    place.end().await;
}

#[tokio::test]
async fn h03_a_429_to_a_ping_is_a_sign_of_life_http() {
    let busy = json!({"on": ["ping", "tools/list"], "skip": 0, "status": 429,
        "headers": {"Retry-After": "1"}});
    let keepalive = Keepalive::new(ms(100)).with_answer(ms(300));
    let place = Place::with(
        &json!({"http": {"answers": "sse"}}),
        pool_settings().with_keepalive(keepalive),
    )
    .await;
    let agent = place.agent(json!({})).await;
    place.faults(json!([busy]));
    let progress = json!({"every_ms": 100});
    let runs = agent.begin(
        "w",
        json!({"delay_ms": 1000, "progress": progress, "echo": "done"}),
    );

    assert_eq!(text(&runs.await.unwrap().unwrap().value), "done");
    assert!(
        until(|| place.probe.received("ping") >= 5).await,
        "it is asked when nothing runs"
    );

    assert_eq!(place.entry().status, Status::Connected);
    assert_eq!(
        (place.probe.received("initialize"), place.entry().restarts),
        (1, 0)
    );
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    place.end().await;
}

#[tokio::test]
async fn h04_nobody_knocks_before_the_time_that_the_server_named_http() {
    let banned = json!({"on": ["initialize"], "times": 1, "status": 429,
        "headers": {"Retry-After": "2"}});
    let place = Place::enter(json!({"faults": [banned]})).await;
    let config = place.config(json!({"steadfast": {"shared": true}, "discoveryTimeoutMs": 5000}));
    let begun = Instant::now();

    let sessions: Vec<_> = (0..20)
        .map(|number| place.pool.session(number.to_string()))
        .collect();
    let calls: Vec<_> = sessions
        .iter()
        .enumerate()
        .map(|(number, session)| {
            let stack =
                quick().with_retry(retry::Settings::new().with_max_retries(number as u32 % 2));
            let agent = Agent::new(session.lease(&config).unwrap(), stack.without_breaker());
            (number, agent.begin("w", json!({"tag": number.to_string()})))
        })
        .collect();

    for (number, call) in calls {
        match call.await.unwrap() {
            Ok(answer) => assert!(answer.is_live()),
            Err(failure) => {
                assert_eq!(number % 2, 0, "{failure}");
                assert!(
                    matches!(failure.class(), Class::Overloaded | Class::NotSent),
                    "{failure}"
                );
                assert!(
                    failure.retry_floor().is_some_and(|wait| wait > ms(500)),
                    "{failure}"
                );
            }
        }
    }
    assert_eq!(
        place.probe.received("initialize"),
        2,
        "one more for all of them"
    );
    assert!(begun.elapsed() >= secs(2));
    let executed = place.stage.ledger().count().unwrap();
    assert!(executed >= 10, "{executed}");
    place.end().await;
}

#[tokio::test]
async fn j04_calls_run_at_once_and_waiting_for_a_turn_is_not_reading_http() {
    let place = Place::enter(json!({})).await;
    let limits = steadfast::timeout::Settings::new().with_read(ms(900));
    let agent = place
        .agent_with(json!({}), once().with_timeout(limits))
        .await;
    let begun = Instant::now();
    let calls: Vec<_> = (0..20)
        .map(|number| agent.begin("w", json!({"delay_ms": 600, "echo": number})))
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        // Four wait for a turn and then take as long as the others: longer than the limit.
        let answer = call.await.unwrap().unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }
    let took = begun.elapsed();
    assert!(took >= ms(1200), "sixteen at once: {took:?}");
    assert!(took < secs(6), "not one after the other: {took:?}");

    // A slow server does not hold up another one.
    let other = HttpProbe::start(place.stage.knobs(&json!({})))
        .await
        .unwrap();
    let config = remote(&other.url(), json!({}));
    let session = place.pool.session("slow");
    let waits = Agent::new(session.acquire(&config).await.unwrap(), once());
    let slow_call = waits.begin("w", json!({"delay_ms": 3000}));
    for _ in 0..20 {
        assert!(
            agent
                .call("w", json!({"delay_ms": 10}))
                .await
                .unwrap()
                .is_live()
        );
    }
    assert!(
        !slow_call.is_finished(),
        "the other server's calls do not wait for it"
    );
    assert!(slow_call.await.unwrap().unwrap().is_live());
    drop(session);
    place.end().await;
}

#[tokio::test]
async fn a_handshake_that_fails_ends_soon_and_sent_no_call_http() {
    let rpc_error =
        "{\"jsonrpc\": \"2.0\", \"id\": {id}, \"error\": {\"code\": -32603, \"message\": \"no\"}}";
    for (fault, class, says) in [
        (json!({"status": 401}), Class::Answered, "401"),
        (json!({"status": 403}), Class::Answered, "403"),
        (json!({"status": 404}), Class::NotSent, "404"),
        (json!({"status": 405}), Class::NotSent, "405"),
        (json!({"status": 500}), Class::NotSent, "500"),
        (
            json!({"status": 302, "headers": {"Location": "/x"}}),
            Class::NotSent,
            "302",
        ),
        (json!({"status": 202}), Class::NotSent, "202"),
        (
            json!({"content_type": "text/html", "body": "<html>"}),
            Class::NotSent,
            "JSON",
        ),
        (json!({"body": "{}"}), Class::NotSent, "no answer"),
        (json!({"body": rpc_error}), Class::NotSent, "-32603"),
        (
            json!({"cut": "reset", "at": "received"}),
            Class::NotSent,
            "reset",
        ),
        (
            json!({"cut": "close", "at": "half"}),
            Class::NotSent,
            "broke off",
        ),
        (
            json!({"cut": "end", "at": "half"}),
            Class::NotSent,
            "no answer",
        ),
        (
            json!({"cut": "stall", "at": "begun"}),
            Class::NotSent,
            "in time",
        ),
    ] {
        let place = Place::enter(json!({"faults": [fault]})).await;
        let config = place.config(json!({"discoveryTimeoutMs": 700}));
        let begun = Instant::now();
        let lease = place.session.lease(&config).unwrap();
        let failed = Agent::new(lease, once())
            .call("w", json!({"tag": "w"}))
            .await;

        let failure = failed.unwrap_err();
        assert!(begun.elapsed() < SOON, "{fault}: {failure}");
        assert_eq!(failure.class(), class, "{fault}: {failure}");
        assert!(!failure.may_have_run(), "{fault}: {failure}");
        assert!(failure.to_string().contains(says), "{fault}: {failure}");
        assert_eq!(place.probe.received("tools/call"), 0, "{fault}");
        place.end().await;
    }
}
