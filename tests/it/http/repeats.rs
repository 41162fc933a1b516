//! What is repeated after a fault, and what never is.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use steadfast::{Class, circuit_breaker::State, timeout};
use steadfast_tests::probe::Cut;
use tokio::time::Instant;

use crate::{
    place::Place,
    support::{SOON, ms, quick, secs, until},
};

#[tokio::test]
async fn d01_a_reset_after_execution_is_never_repeated_http() {
    for fields in [json!({}), json!({"protocolVersion": "2026-07-28"})] {
        for format in ["json", "sse"] {
            for cut in ["reset", "close"] {
                let place = Place::enter(json!({"answers": format})).await;
                let agent = place.agent(fields.clone()).await;
                let fault = json!({"cut": cut, "at": "executed"});

                let lost = agent.call("w", json!({"tag": "lost", "http": fault})).await;

                let failure = lost.unwrap_err();
                assert_eq!(failure.class(), Class::Unknown, "{format} {cut}: {failure}");
                assert!(failure.may_have_run(), "{failure}");
                assert_eq!(failure.attempts(), 1, "{failure}");
                assert!(
                    agent
                        .call("w", json!({"tag": "next"}))
                        .await
                        .unwrap()
                        .is_live()
                );
                let executed = |tag| place.stage.executed(tag);
                assert_eq!((executed("lost"), executed("next")), (1, 1));
                assert_eq!(place.requests("tools/call").len(), 2);
                place.end().await;
            }
        }
    }
}

#[tokio::test]
async fn d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection_http() {
    let place = Place::enter(json!({})).await;
    let agent = place
        .agent(json!({"steadfast": {"max_in_flight": 1}}))
        .await;
    let written = agent.begin("w", json!({"tag": "written", "stall": true}));
    place.stage.executed_soon("written").await;
    let queued = agent.begin("w", json!({"tag": "queued"}));
    assert!(until(|| place.entry().in_flight == 2).await);
    assert_eq!(place.requests("tools/call").len(), 1);

    place.probe.cut_all(Cut::Reset);

    assert_eq!(written.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert!(queued.await.unwrap().unwrap().is_live());
    let executed = |tag| place.stage.executed(tag);
    assert_eq!((executed("written"), executed("queued")), (1, 1));
    let tags: Vec<_> = place
        .requests("tools/call")
        .into_iter()
        .map(|seen| seen.tag.unwrap())
        .collect();
    assert_eq!(tags, ["written", "queued"], "each was sent once");
    place.end().await;
}

#[tokio::test]
async fn g03_what_is_no_answer_ends_the_call_and_not_the_connection_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent_with(json!({}), quick().without_breaker()).await;
    let html = "<html><body>Welcome</body></html>";
    for (name, fault, class) in [
        (
            "html",
            json!({"status": 200, "content_type": "text/html", "body": html}),
            Class::Unknown,
        ),
        (
            "html as JSON",
            json!({"status": 200, "body": html}),
            Class::Unknown,
        ),
        (
            "plain 401",
            json!({"status": 401, "content_type": "", "body": "who are you?"}),
            Class::Answered,
        ),
        ("bare 401", json!({"status": 401}), Class::Answered),
        ("foreign", json!({"body": "{\"ok\": true}"}), Class::Unknown),
        ("a list", json!({"body": "[]"}), Class::Unknown),
        ("id as text", answer(&json!("{id}")), Class::Unknown),
        ("another id", answer(&json!(4711)), Class::Unknown),
        ("no id", answer(&Value::Null), Class::Unknown),
    ] {
        let begun = Instant::now();
        let failed = agent.call("w", json!({"tag": name, "http": fault})).await;
        let failure = failed.unwrap_err();

        assert_eq!(failure.class(), class, "{name}: {failure}");
        assert_eq!(failure.attempts(), 1, "{name}: {failure}");
        assert!(begun.elapsed() < SOON, "{name}: {failure}");
        assert!(
            agent.call("w", json!({})).await.unwrap().is_live(),
            "after {name}"
        );
    }
    // The server itself, with an id of another kind.
    for id in [json!("1"), json!(4711), json!(1.5)] {
        let tag = id.to_string();
        let failure = agent
            .call("w", json!({"tag": tag, "answer_id": id}))
            .await
            .unwrap_err();
        assert_eq!(failure.class(), Class::Unknown, "{tag}: {failure}");
        assert_eq!(place.stage.executed(&tag), 1, "{tag}");
    }
    assert_eq!(place.probe.received("initialize"), 1);
    place.end().await;
}

#[tokio::test]
async fn g05_a_400_with_an_error_in_it_is_an_answer_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    for id in ["{id}", "0", "null", "\"7\"", ""] {
        let id_field = if id.is_empty() {
            String::new()
        } else {
            format!("\"id\": {id}, ")
        };
        let body = format!(
            "{{\"jsonrpc\": \"2.0\", {id_field}\"error\": {{\"code\": -32600, \"message\": \"seven is odd\"}}}}"
        );
        let fault = json!({"status": 400, "body": body});
        let begun = Instant::now();
        let failed = agent.call("r", json!({"tag": id, "http": fault})).await;
        let failure = failed.unwrap_err();

        assert_eq!(failure.class(), Class::Answered, "{id}: {failure}");
        assert_eq!(failure.attempts(), 1, "{id}: {failure}");
        assert!(
            failure.to_string().contains("seven is odd"),
            "{id}: {failure}"
        );
        assert!(begun.elapsed() < SOON, "{id}");
        assert_eq!(place.stage.executed(id), 0);
    }
    assert_eq!(agent.circuit(), Some(State::Closed));
    place.end().await;
}

#[tokio::test]
async fn h01_a_429_is_waited_for_and_repeated_for_every_tool_http() {
    let place = Place::enter(json!({})).await;
    let limits = timeout::Settings::new().with_read(secs(3));
    let stack = quick().with_timeout(limits).with_total(secs(5));
    let agent = place.agent_with(json!({}), stack).await;
    #[allow(
        clippy::disallowed_methods,
        reason = "a server names a date, not a span"
    )]
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3));
    for (after, at_least) in [("1", secs(1)), (date.as_str(), ms(900))] {
        let fault = json!({"status": 429, "times": 1, "headers": {"Retry-After": after}});
        let begun = Instant::now();

        let answer = agent.call("w", json!({"tag": after, "http": fault})).await;

        assert!(answer.unwrap().is_live());
        let took = begun.elapsed();
        assert!(took >= at_least && took < secs(5), "{after}: {took:?}");
        assert_eq!(place.stage.executed(after), 1);
        assert_eq!(agent.circuit(), Some(State::Closed));
    }
    // Longer than there is time: told at once, and nothing is slept away.
    let fault = json!({"status": 429, "headers": {"Retry-After": "30"}});
    let begun = Instant::now();
    let failure = agent
        .call("w", json!({"tag": "long", "http": fault}))
        .await
        .unwrap_err();
    assert_eq!(failure.class(), Class::Overloaded, "{failure}");
    assert_eq!(failure.retry_after(), Some(secs(30)));
    assert!(begun.elapsed() < SOON);
    place.end().await;
}

fn answer(id: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string();
    json!({ "body": body })
}
