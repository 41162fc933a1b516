//! Streams of events, and how they are resumed.

use serde_json::{Value, json};

use super::client::{End, Visit};

/// An answer as events with ids, after two notices.
fn told() -> Value {
    let progress = json!({ "count": 2, "token": "invented" });
    json!({ "echo": "hello", "progress": progress })
}

fn with_fault(fault: Value) -> Value {
    let mut call = told();
    call["http"] = fault;
    call
}

fn answer(event: &str) -> Value {
    let event: Value = serde_json::from_str(event).unwrap();
    event["result"]["content"][0]["text"].clone()
}

#[tokio::test]
async fn an_answer_comes_as_events() {
    let mut visit = Visit::ready(json!({ "answers": "sse" })).await;
    let seen = visit.call("w", told()).await;

    assert_eq!(seen.headers["content-type"], "text/event-stream");
    assert_eq!(seen.end, End::Whole);
    let [first, second, last] = seen.events()[..] else {
        panic!("{seen:?}");
    };
    assert_eq!((first.0, second.0, last.0), (None, None, None));
    assert!(first.1.contains("notifications/progress"));
    assert_eq!(answer(last.1), "hello");
}

#[tokio::test]
async fn a_stream_that_ended_is_resumed_after_its_last_event() {
    let look = json!({ "ids": true, "priming": true, "retry_ms": 50 });
    let mut visit = Visit::ready(json!({ "answers": "sse", "events": look })).await;
    for (cut, at, end) in [
        ("end", "begun", End::Whole),
        ("close", "begun", End::Closed),
        ("end", "half", End::Whole),
        ("close", "half", End::Closed),
    ] {
        let seen = visit
            .call("w", with_fault(json!({ "cut": cut, "at": at })))
            .await;
        assert_eq!(seen.end, end, "{cut} {at}");
        assert!(seen.body.starts_with("retry: 50\nid: "), "{seen:?}");
        let ids: Vec<_> = seen
            .events()
            .iter()
            .filter_map(|event| event.0)
            .map(str::to_owned)
            .collect();
        assert_eq!(ids.len(), if at == "begun" { 1 } else { 4 }, "{seen:?}");
        let last = if at == "begun" { &ids[0] } else { &ids[2] };

        let resumed = visit.get(&[("Last-Event-ID", last)]).await;

        let events: Vec<_> = resumed
            .events()
            .iter()
            .map(|event| event.1)
            .filter(|data| !data.is_empty())
            .collect();
        assert_eq!(
            events.len(),
            if at == "begun" { 3 } else { 1 },
            "{resumed:?}"
        );
        assert_eq!(answer(events.last().unwrap()), "hello", "{cut} {at}");
        let again = visit.get(&[("Last-Event-ID", last)]).await;
        assert_eq!(again.status, 404, "it was delivered");
    }
    assert_eq!(visit.executed(), 4);
}

#[tokio::test]
async fn a_resume_may_be_refused() {
    let fault = json!({ "on": ["resume"], "status": 500 });
    let mut visit = Visit::ready(json!({ "faults": [fault], "events": { "ids": true } })).await;
    assert_eq!(visit.get(&[("Last-Event-ID", "1-0")]).await.status, 500);
    visit.probe.change(|knobs| knobs.faults.clear());
    assert_eq!(visit.get(&[("Last-Event-ID", "1-0")]).await.status, 404);
    assert_eq!(
        visit.get(&[("Last-Event-ID", "nonsense")]).await.status,
        400
    );
    let seen = visit.call("w", json!({})).await;
    assert_eq!(seen.status, 200);
}

#[tokio::test]
async fn what_belongs_to_no_request_comes_by_get() {
    let mut visit = Visit::ready(json!({})).await;
    let mut stream = visit.connect().await;
    let request = visit.bytes("GET", &[], "");
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();

    visit.call("w", json!({ "change_list": 2 })).await;

    let seen = super::client::read(&mut stream).await;
    assert_eq!(seen.end, End::Silent, "it stays open: {seen:?}");
    let events = seen.events();
    assert_eq!(events.len(), 2, "{seen:?}");
    assert!(events[0].1.contains("notifications/tools/list_changed"));

    // What was delivered does not come again.
    let again = visit.get(&[]).await;
    assert_eq!((again.end, again.events().len()), (End::Silent, 0));
}

#[tokio::test]
async fn the_other_stream_may_be_missing_or_silent() {
    let visit = Visit::ready(json!({})).await;
    for (fault, status, end) in [
        (json!({ "status": 405 }), 405, End::Whole),
        (json!({ "status": 501 }), 501, End::Whole),
        (json!({ "cut": "stall", "at": "received" }), 0, End::Silent),
        (json!({ "cut": "end", "at": "begun" }), 200, End::Whole),
    ] {
        let mut fault = fault;
        fault["on"] = json!(["GET"]);
        visit
            .probe
            .change(|knobs| knobs.faults = vec![serde_json::from_value(fault.clone()).unwrap()]);
        let seen = visit.get(&[]).await;
        assert_eq!((seen.status, seen.end), (status, end), "{fault}: {seen:?}");
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_leaves_the_stream_open() {
    let mut visit = Visit::start(json!({ "start": { "ignore_ping": true } })).await;
    visit.shake_hands().await;
    let seen = visit.ask("ping", json!({})).await;
    assert_eq!((seen.end, seen.raw.as_str()), (End::Silent, ""));
    let seen = visit
        .call("w", json!({ "stall": true, "http": { "format": "sse" } }))
        .await;
    assert_eq!((seen.end, seen.status), (End::Silent, 200));
    assert_eq!(visit.probe.running(), 1);
}
