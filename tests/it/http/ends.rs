//! Calls that end although their answer never comes.

use serde_json::json;
use steadfast::{Class, Phase, circuit_breaker::State, timeout};
use steadfast_tests::probe::Cut;
use tokio::time::Instant;

use crate::{
    place::{Place, once, remote},
    process::Process,
    support::{Agent, SOON, Stage, ms, quick, secs},
};

#[tokio::test]
async fn a03_a_503_is_told_and_repeated_only_where_that_is_harmless_http() {
    let busy = json!({"on": ["tools/call"], "times": 3, "status": 503,
        "content_type": "text/plain", "body": "the backend restarts"});
    let place = Place::enter(json!({"faults": [busy]})).await;
    let agent = place.agent(json!({})).await;

    let begun = Instant::now();
    let failure = agent.call("w", json!({"tag": "w"})).await.unwrap_err();
    assert!(begun.elapsed() < SOON);
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    for part in ["503", "the backend restarts"] {
        assert!(failure.to_string().contains(part), "{failure}");
    }

    assert!(
        agent
            .call("r", json!({"tag": "r"}))
            .await
            .unwrap()
            .is_live()
    );
    assert_eq!(place.requests("tools/call").len(), 1 + 3);
    assert_eq!(place.stage.executed("r"), 1);
    assert_eq!(agent.circuit(), Some(State::Closed));
    assert_eq!(
        place.probe.received("initialize"),
        1,
        "the session is the same"
    );
    place.end().await;
}

#[tokio::test]
async fn a09_calls_end_with_their_connections_and_while_there_are_none_http() {
    for answers in ["json", "sse"] {
        let place =
            Place::enter(json!({"answers": answers, "events": {"ids": true, "priming": true}}))
                .await;
        let agent = place.agent_with(json!({}), quick().without_breaker()).await;
        let running: Vec<_> = (0..6)
            .map(|number| agent.begin("w", json!({"tag": number.to_string(), "stall": true})))
            .collect();
        for number in 0..6 {
            place.stage.executed_soon(&number.to_string()).await;
        }

        place.probe.go_down(Cut::Reset).await;

        for (number, call) in running.into_iter().enumerate() {
            let ended = tokio::time::timeout(secs(9), call).await;
            let failure = ended.expect("it ends soon").unwrap().unwrap_err();
            assert_eq!(
                failure.class(),
                Class::Unknown,
                "{answers} {number}: {failure}"
            );
            assert_eq!(place.stage.executed(&number.to_string()), 1);
        }
        let failure = agent.call("w", json!({"tag": "later"})).await.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
        assert!(
            failure.to_string().to_lowercase().contains("refused"),
            "{failure}"
        );

        place.probe.come_back().await;
        assert!(
            agent
                .call("w", json!({"tag": "later"}))
                .await
                .unwrap()
                .is_live()
        );
        assert_eq!(place.stage.executed("later"), 1);
        place.end().await;
    }
}

#[tokio::test]
async fn every_way_an_answer_can_stay_away_ends_soon_or_by_the_read_limit_http() {
    let place = Place::enter(json!({})).await;
    let limits = timeout::Settings::new().with_read(ms(600));
    let stack = once().without_breaker().with_timeout(limits);
    let agent = place.agent_with(json!({}), stack).await;
    let ids = json!({"ids": true, "priming": true, "retry_ms": 10});
    for (fault, class, executed) in [
        (json!({"cut": "reset", "at": "received"}), Class::Unknown, 0),
        (json!({"cut": "close", "at": "received"}), Class::Unknown, 0),
        (json!({"cut": "stall", "at": "received"}), Class::Timeout, 0),
        (json!({"cut": "stall", "at": "executed"}), Class::Timeout, 1),
        (json!({"cut": "close", "at": "head"}), Class::Unknown, 1),
        (json!({"cut": "stall", "at": "head"}), Class::Timeout, 1),
        (json!({"cut": "stall", "at": "begun"}), Class::Timeout, 1),
        (json!({"cut": "close", "at": "half"}), Class::Unknown, 1),
        (json!({"cut": "end", "at": "half"}), Class::Unknown, 1),
        (json!({"cut": "end", "at": "begun"}), Class::Unknown, 1),
        (
            json!({"cut": "close", "at": "half", "chunked": true}),
            Class::Unknown,
            1,
        ),
        (
            json!({"cut": "end", "at": "half", "chunked": true}),
            Class::Unknown,
            1,
        ),
        (json!({"status": 202, "execute": true}), Class::Unknown, 1),
        (json!({"status": 204, "execute": true}), Class::Unknown, 1),
        (json!({"status": 200, "execute": true}), Class::Unknown, 1),
        (
            json!({"format": "sse", "cut": "stall", "at": "begun"}),
            Class::Timeout,
            1,
        ),
        (
            json!({"format": "sse", "cut": "end", "at": "begun"}),
            Class::Unknown,
            1,
        ),
        (
            json!({"format": "sse", "cut": "close", "at": "begun"}),
            Class::Unknown,
            1,
        ),
        (
            json!({"format": "sse", "cut": "reset", "at": "half"}),
            Class::Unknown,
            1,
        ),
        (
            json!({"format": "sse", "cut": "end", "at": "half"}),
            Class::Unknown,
            1,
        ),
    ] {
        let tag = fault.to_string();
        let begun = Instant::now();
        let failure = agent
            .call("w", json!({"tag": tag, "http": fault}))
            .await
            .unwrap_err();

        assert_eq!(failure.class(), class, "{tag}: {failure}");
        assert!(begun.elapsed() < SOON, "{tag}: {failure}");
        assert_eq!(place.stage.executed(&tag), executed, "{tag}");
        assert!(failure.may_have_run(), "{tag}: {failure}");
        assert!(
            agent.call("w", json!({})).await.unwrap().is_live(),
            "after {tag}"
        );
    }
    // With ids the rest of the stream is fetched.
    for (cut, at) in [("end", "begun"), ("close", "begun"), ("close", "half")] {
        let tag = format!("resumed {cut} {at}");
        let fault = json!({"format": "sse", "events": ids, "cut": cut, "at": at});
        let answer = agent
            .call("w", json!({"tag": tag, "http": fault, "delay_ms": 200}))
            .await;
        assert!(
            answer
                .unwrap_or_else(|failure| panic!("{tag}: {failure}"))
                .is_live()
        );
        assert_eq!(place.stage.executed(&tag), 1, "{tag}");
    }
    assert_eq!(place.probe.received("initialize"), 1);
    place.end().await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_ends_its_call_http() {
    let look = json!({"ids": true, "priming": true, "retry_ms": 10});
    let place = Place::enter(json!({"answers": "sse", "events": look})).await;
    let agent = place.agent_with(json!({}), once().without_breaker()).await;
    for refusal in [
        json!({"status": 404}),
        json!({"status": 405}),
        json!({"status": 500}),
        json!({"cut": "reset"}),
        json!({"cut": "end", "at": "begun"}),
    ] {
        let mut refusal = refusal;
        refusal["on"] = json!(["resume"]);
        let tag = refusal.to_string();
        place.faults(json!([refusal]));
        let cut = json!({"cut": "close", "at": "begun"});
        let begun = Instant::now();

        let failure = agent
            .call("w", json!({"tag": tag, "http": cut}))
            .await
            .unwrap_err();

        assert_eq!(failure.class(), Class::Unknown, "{tag}: {failure}");
        assert!(begun.elapsed() < secs(9), "{tag}: {failure}");
        assert_eq!(place.stage.executed(&tag), 1, "{tag}");
    }
    let resumes = |requests: &[steadfast_tests::probe::HttpRequest]| {
        requests
            .iter()
            .filter(|seen| seen.header("last-event-id").is_some())
            .count()
    };
    assert!(resumes(&place.probe.requests()) <= 5 * 5);
    place.end().await;
}

#[tokio::test]
async fn g07_a_server_that_is_down_fails_its_call_and_nothing_else_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    place.probe.go_down(Cut::Close).await;

    let mut group = tokio::task::JoinSet::new();
    let call = agent.clone();
    group.spawn(async move { call.call("w", json!({})).await.map(drop).map_err(Some) });
    for _ in 0..2 {
        group.spawn(async {
            tokio::time::sleep(ms(300)).await;
            Ok(())
        });
    }

    let mut failures = Vec::new();
    while let Some(ended) = group.join_next().await {
        failures.extend(ended.expect("nothing was cancelled").err());
    }
    let [Some(failure)] = &failures[..] else {
        panic!("{failures:?}");
    };
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    place.end().await;
}

#[tokio::test]
async fn a01_a_server_killed_in_mid_call_is_used_again_once_it_is_back_http() {
    let stage = Stage::enter().await;
    let server = Process::start(&stage, &json!({"http": {}})).await;
    let port = server.port();
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&remote(&server.url, json!({}))).await;
    let agent = Agent::new(lease.unwrap(), quick().without_breaker());
    let running = ["w", "r"].map(|tool| agent.begin(tool, json!({"tag": tool, "stall": true})));
    for tag in ["w", "r"] {
        stage.executed_soon(tag).await;
    }

    server.kill().await;

    let [order, question] = running;
    let failure = order.await.unwrap().unwrap_err();
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    // What is harmless is repeated: nobody is there.
    let failure = question.await.unwrap().unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(failure.may_have_run(), "the first attempt did: {failure}");

    // It knows nothing of the old session.
    let server = Process::start(&stage, &json!({"http": {"port": port}})).await;
    assert!(
        agent
            .call("w", json!({"tag": "next"}))
            .await
            .unwrap()
            .is_live()
    );
    assert_eq!((stage.executed("w"), stage.executed("next")), (1, 1));
    drop(session);
    pool.drain_all(secs(5)).await;
    server.kill().await;
    stage.ended(pool).await;
}
