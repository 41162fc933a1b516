//! What a cancel notice does.

use serde_json::json;
use steadfast_tests::probe::Knobs;
use tokio::time::Instant;

use crate::driver::{Client, Files, ms};

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_stops_and_its_neighbour_goes_on() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let cancelled = client.begin("w", json!({ "delay_ms": 1_000 })).await;
    let other = client.begin("w", json!({ "delay_ms": 1_000 })).await;

    client.cancel(cancelled).await;

    assert_eq!(client.next().await["id"], other);
    assert!(client.hears_nothing_for(ms(5_000)).await);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_answered_if_told() {
    for (on_cancel, after, is_error) in [
        ("ignore", 1_000, false),
        ("answer", 400, false),
        ("error", 400, true),
    ] {
        let (mut client, _server) = Client::ready(Knobs::default()).await;
        let before = Instant::now();
        let arguments = json!({ "delay_ms": 1_000, "on_cancel": on_cancel });
        let id = client.begin("w", arguments).await;

        tokio::time::sleep(ms(400)).await;
        client.cancel(id).await;

        let answer = client.next().await;
        assert_eq!(answer["id"], id, "{on_cancel}");
        assert_eq!(answer.get("error").is_some(), is_error, "{on_cancel}");
        assert_eq!(before.elapsed(), ms(after), "{on_cancel}");
        assert!(client.hears_nothing_for(ms(5_000)).await, "{on_cancel}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_nothing_changes_nothing() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    client.call("w", json!({})).await;

    client.cancel(2).await;
    client.cancel(99).await;
    client.notify("notifications/cancelled", json!({})).await;

    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_call_cancelled_right_behind_its_request_is_found() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    let request = json!({
        "jsonrpc": "2.0", "id": "x", "method": "tools/call",
        "params": { "name": "w", "arguments": { "delay_ms": 10 } },
    });
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "x" },
    });

    client
        .send_bytes(format!("{request}\n{cancel}\n").as_bytes())
        .await;

    assert!(client.hears_nothing_for(ms(1_000)).await);
}
