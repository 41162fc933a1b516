//! What the server hears of calls that were given up, and what is left of them here.

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use steadfast::{Class, Limits};
use steadfast_tests::probe::{EventKind, HttpRequest};
use tokio::time::sleep;

use crate::{
    place::{Place, once},
    support::{Agent, ms, object, pool_settings, quick, text, until},
};

const CANCEL: &str = "notifications/cancelled";

#[tokio::test]
async fn n01_a_call_that_was_given_up_is_cancelled_once_http() {
    for format in ["json", "sse"] {
        let place = Place::enter(json!({"answers": format})).await;
        let agent = place.agent_with(json!({}), once().without_breaker()).await;
        let slow = |tag: &str| {
            let call = agent.lease.tool("w");
            call.with_arguments(object(json!({"tag": tag, "delay_ms": 60_000})))
        };

        let timed_out = slow("timed out").with_limits(Limits::new().with_read(ms(200)));
        let failure = agent.send(timed_out).await.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout, "{failure}");
        assert!(
            until(|| cancelled(&place) == [id_of(&place, "timed out")]).await,
            "{format}"
        );

        let dropped = tokio::time::timeout(ms(200), agent.send(slow("dropped"))).await;
        assert!(dropped.is_err());
        assert!(until(|| cancelled(&place).len() == 2).await, "{format}");

        let session = place.pool.session("closes");
        let closing = Agent::new(
            session.acquire(&place.config(json!({}))).await.unwrap(),
            once(),
        );
        let running = closing.begin("w", json!({"tag": "closed", "delay_ms": 60_000}));
        place.stage.executed_soon("closed").await;
        session.close();
        let failure = running.await.unwrap().unwrap_err();
        assert!(
            matches!(failure.class(), Class::Rejected | Class::Cancelled),
            "{failure}"
        );
        assert!(failure.may_have_run(), "{failure}");
        assert!(until(|| cancelled(&place).len() == 3).await, "{format}");

        let many: Vec<_> = (0..10)
            .map(|n| agent.begin("w", json!({"tag": format!("m{n}"), "delay_ms": 60_000})))
            .collect();
        for number in 0..10 {
            place.stage.executed_soon(&format!("m{number}")).await;
        }
        many.iter().for_each(|call| call.abort());
        assert!(
            until(|| cancelled(&place).len() == 13).await,
            "{format}: {}",
            cancelled(&place).len()
        );
        sleep(ms(300)).await;
        let mut told = cancelled(&place);
        assert_eq!(told.len(), 13, "each was told once");
        told.sort_by_key(Value::to_string);
        told.dedup();
        assert_eq!(
            told.len(),
            12,
            "two sessions each number their own: {told:?}"
        );
        assert!(until(|| place.probe.running() == 0).await);
        place.end().await;
    }
}

#[tokio::test]
async fn n01_fifty_calls_dropped_at_once_are_all_cancelled_and_the_queued_never_sent_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent_with(json!({}), once().without_breaker()).await;
    let calls: Vec<_> = (0..50)
        .map(|number| agent.begin("w", json!({"tag": number.to_string(), "delay_ms": 60_000})))
        .collect();
    // Sixteen run, the others wait for their turn.
    assert!(until(|| place.probe.running() == 16 && place.entry().in_flight == 50).await);

    calls.iter().for_each(|call| call.abort());

    assert!(until(|| cancelled(&place).len() == 16).await);
    assert!(until(|| place.probe.running() == 0).await);
    sleep(ms(300)).await;
    assert_eq!(
        place.requests("tools/call").len(),
        16,
        "none of the queued was sent"
    );
    assert_eq!(cancelled(&place).len(), 16, "and none of them cancelled");
    assert_eq!(place.entry().in_flight, 0);
    place.end().await;
}

#[tokio::test]
async fn n01_an_initialize_that_timed_out_is_not_cancelled_http() {
    let place = Place::with(&json!({"start": {"never": true}}), pool_settings()).await;
    let config = place.config(json!({"discoveryTimeoutMs": 300}));
    let failure = place.session.acquire(&config).await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    sleep(ms(300)).await;
    assert!(place.probe.received("initialize") >= 1);
    assert_eq!(cancelled(&place).len(), 0);
    place.end().await;
}

#[tokio::test]
async fn n01_without_initialize_closing_the_stream_is_the_cancel_http() {
    for format in ["json", "sse"] {
        let place = Place::enter(json!({"answers": format})).await;
        let agent = place
            .agent_with(
                json!({"protocolVersion": "2026-07-28"}),
                once().without_breaker(),
            )
            .await;
        let call = agent.lease.tool("w");
        let call = call.with_arguments(object(json!({"tag": "slow", "delay_ms": 60_000})));
        let failure = agent
            .send(call.with_limits(Limits::new().with_read(ms(200))))
            .await
            .unwrap_err();

        assert_eq!(failure.class(), Class::Timeout, "{failure}");
        assert!(
            until(|| place.probe.running() == 0).await,
            "{format}: it ended there"
        );
        let gone = place
            .stage
            .events_with(|events| events.iter().any(|e| e.kind == EventKind::Gone))
            .await;
        let gone = gone
            .iter()
            .find(|event| event.kind == EventKind::Gone)
            .unwrap();
        assert_eq!(gone.id, Some(id_of(&place, "slow")));
        assert_eq!(cancelled(&place).len(), 0, "{format}: no message says so");
        assert!(agent.call("w", json!({})).await.unwrap().is_live());
        place.end().await;
    }
}

#[tokio::test]
async fn d04_a_call_that_timed_out_is_cancelled_before_it_is_repeated_http() {
    let place = Place::enter(json!({})).await;
    let limits = steadfast::timeout::Settings::new().with_read(ms(300));
    let retry = steadfast::retry::Settings::new().with_max_retries(2);
    let stack = quick()
        .with_timeout(limits)
        .with_retry(retry)
        .without_breaker();
    let agent = place.agent_with(json!({}), stack).await;
    for (tool, calls) in [("w", 1), ("i", 3)] {
        let before = place.probe.requests().len();
        let slow = agent
            .call(tool, json!({"tag": tool, "delay_ms": 60_000}))
            .await;
        assert_eq!(slow.unwrap_err().class(), Class::Timeout);
        assert_eq!(place.stage.executed(tool), calls);
        let of_call = |seen: &&HttpRequest| seen.is("tools/call") || seen.is(CANCEL);
        let order = || -> Vec<_> {
            let requests = place.probe.requests();
            let turns = requests[before..].iter().filter(of_call);
            turns.map(|seen| seen.rpc.clone().unwrap()).collect()
        };
        assert!(until(|| order().len() == 2 * calls).await, "{:?}", order());
        let in_turn = order().chunks(2).all(|turn| turn == ["tools/call", CANCEL]);
        assert!(in_turn, "{:?}", order());
    }
    place.end().await;
}

#[tokio::test]
async fn n04_answers_and_cancels_may_cross_http() {
    for on_cancel in ["stop", "ignore", "answer", "error"] {
        for format in ["json", "sse"] {
            let place = Place::enter(json!({"answers": format})).await;
            let agent = place.agent_with(json!({}), once().without_breaker()).await;
            let calls = stream::iter(0..250).map(|number| {
                let call = agent.lease.tool("r").with_arguments(object(json!({
                    "delay_ms": 20, "jitter_ms": 4, "echo": number, "on_cancel": on_cancel,
                    "answer_again": number % 2,
                })));
                // Right when the answer comes, give or take.
                let call = call.with_limits(Limits::new().with_read(ms(20 + number % 5)));
                let agent = agent.clone();
                async move {
                    match agent.send(call).await {
                        Ok(answer) => assert_eq!(text(&answer.value), number.to_string()),
                        Err(failure) => assert_eq!(failure.class(), Class::Timeout, "{failure}"),
                    }
                }
            });
            calls.buffer_unordered(8).count().await;
            for number in 0..10 {
                let answer = agent
                    .call("w", json!({"echo": format!("later {number}")}))
                    .await;
                assert_eq!(text(&answer.unwrap().value), format!("later {number}"));
            }
            assert_eq!(
                place.probe.received("initialize"),
                1,
                "{on_cancel} {format}"
            );
            assert_eq!(place.entry().in_flight, 0);
            place.end().await;
        }
    }
}

/// The ids of the calls that the server was told are cancelled.
fn cancelled(place: &Place) -> Vec<Value> {
    let notices = place.requests(CANCEL).into_iter();
    let ids = notices.map(|seen| serde_json::from_str::<Value>(&seen.body).unwrap());
    ids.map(|notice| notice["params"]["requestId"].clone())
        .collect()
}

fn id_of(place: &Place, tag: &str) -> Value {
    let calls = place.requests("tools/call");
    let call = calls
        .into_iter()
        .find(|seen| seen.tag.as_deref() == Some(tag));
    call.unwrap().id.unwrap()
}
