//! Exchanges that end before their end: where, how, and whether anything was executed.

use serde_json::{Value, json};

use super::client::{End, SOON, Visit, exchange};

#[tokio::test]
async fn a_json_answer_is_cut_where_it_is_told() {
    let mut visit = Visit::ready(json!({})).await;
    for (at, executes, begins, ends) in [
        ("received", 0, "", ""),
        ("executed", 1, "", ""),
        ("head", 1, "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n"),
        ("begun", 1, "HTTP/1.1 200 OK", "\r\n\r\n"),
        ("half", 1, "HTTP/1.1 200 OK", "\"id\":"),
    ] {
        for (cut, end) in [
            ("close", End::Closed),
            ("stall", End::Silent),
            ("reset", End::Reset),
        ] {
            let before = visit.executed();
            let seen = visit
                .call("w", json!({ "http": { "cut": cut, "at": at } }))
                .await;

            assert_eq!(seen.end, end, "{cut} {at}: {seen:?}");
            assert_eq!(visit.executed() - before, executes, "{cut} {at}");
            // A reset may overtake what was sent before it.
            if end != End::Reset {
                assert!(seen.raw.starts_with(begins), "{cut} {at}: {seen:?}");
                assert!(seen.raw.contains(ends), "{cut} {at}: {seen:?}");
                assert!(!seen.raw.ends_with("}}"), "{cut} {at}: {seen:?}");
            }
            assert!(seen.raw.is_empty() || executes == 1, "{cut} {at}: {seen:?}");
        }
    }
    assert!(visit.call("w", json!({})).await.json()["result"].is_object());
}

#[tokio::test]
async fn half_a_body_may_look_whole() {
    let mut visit = Visit::ready(json!({})).await;
    for chunked in [false, true] {
        let fault = json!({ "cut": "end", "at": "half", "chunked": chunked });
        let seen = visit.call("w", json!({ "http": fault })).await;

        assert_eq!(seen.end, End::Whole, "{seen:?}");
        assert_eq!(seen.headers.contains_key("content-length"), !chunked);
        assert!(!seen.body.is_empty());
        assert!(
            serde_json::from_str::<Value>(&seen.body).is_err(),
            "{seen:?}"
        );
    }
    let fault = json!({ "cut": "close", "at": "half", "chunked": true });
    let seen = visit.call("w", json!({ "http": fault })).await;
    assert_eq!(seen.end, End::Closed, "half a chunked body: {seen:?}");
}

#[tokio::test]
async fn a_body_may_stay_unread() {
    let mut visit = Visit::ready(json!({})).await;
    for (fault, end, status) in [
        (json!({ "cut": "stall" }), End::Silent, 0),
        (json!({ "cut": "reset" }), End::Reset, 0),
        (json!({ "status": 413 }), End::Whole, 413),
    ] {
        let mut fault = fault;
        fault["on"] = json!(["POST"]);
        fault["at"] = json!("unread");
        visit
            .probe
            .change(|knobs| knobs.faults = serde_json::from_value(json!([fault])).unwrap());
        let message = visit.message("tools/call", json!({ "name": "w" }));
        let request = visit.bytes("POST", &[], &message.to_string());

        let seen = exchange(&mut visit.connect().await, &request).await;

        assert_eq!((seen.end, seen.status), (end, status), "{fault}: {seen:?}");
        assert_eq!(visit.probe.requests().last().unwrap().body, "", "{fault}");
    }
    assert_eq!(visit.executed(), 0);
}

#[tokio::test]
async fn bodies_come_in_pieces() {
    let mut visit = Visit::ready(json!({})).await;
    let fault = json!({ "piece": 1, "piece_gap_ms": 1 });
    let begun = tokio::time::Instant::now();
    let seen = visit.call("w", json!({ "http": fault })).await;
    assert_eq!(seen.json()["result"]["isError"], false);
    assert!(begun.elapsed().as_millis() as usize >= seen.body.len());

    let fault = json!({ "piece": 1, "format": "sse" });
    let seen = visit.call("w", json!({ "http": fault })).await;
    assert!(seen.raw.matches("\r\n1\r\n").count() > 100, "{seen:?}");
    assert_eq!(seen.events().len(), 1);

    let big = visit
        .call("w", json!({ "http": { "body_bytes": 200_000 } }))
        .await;
    assert_eq!((big.body.len(), big.end), (200_000, End::Whole));
}

#[tokio::test]
async fn a_silent_connection_is_closed_if_told() {
    let mut visit = Visit::ready(json!({})).await;
    visit.probe.change(|knobs| knobs.idle_ms = Some(400));

    let mut idle = visit.connect().await;
    let seen = super::client::read(&mut idle).await;
    assert_eq!(seen.end, End::Closed);

    let seen = visit.call("w", json!({ "stall": true })).await;
    assert_eq!((seen.end, seen.raw.as_str()), (End::Closed, ""));
    let progress = json!({ "every_ms": 100, "token": "invented" });
    let busy = json!({ "delay_ms": 1000, "progress": progress, "http": { "format": "sse" } });
    let message = visit.message("tools/call", json!({ "name": "w", "arguments": busy }));
    let mut stream = visit.connect().await;
    let request = visit.bytes("POST", &[], &message.to_string());
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();
    let mut text = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut text);
    tokio::time::timeout(SOON, read).await.unwrap().unwrap();
    assert!(String::from_utf8(text).unwrap().contains("\"result\""));
}
