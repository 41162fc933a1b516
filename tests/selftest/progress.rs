//! Progress notices.

use serde_json::{Value, json};
use steadfast_tests::probe::Knobs;
use tokio::time::Instant;

use crate::driver::{Client, ms};

fn asking(token: Option<&str>, arguments: &Value) -> Value {
    let mut params = json!({ "name": "w", "arguments": arguments });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    params
}

/// The tokens of all notices before the next answer.
async fn tokens(client: &mut Client) -> Vec<Value> {
    let mut tokens = Vec::new();
    loop {
        let message = client.next().await;
        if message["method"] != "notifications/progress" {
            return tokens;
        }
        tokens.push(message["params"]["progressToken"].clone());
    }
}

#[tokio::test(start_paused = true)]
async fn progress_comes_only_if_it_was_asked_for() {
    let arguments = json!({ "delay_ms": 1_050, "progress": { "every_ms": 100 } });
    for (token, notices) in [(Some("mine"), 10), (None, 0)] {
        let (mut client, _server) = Client::ready(Knobs::default()).await;
        let before = Instant::now();

        let params = asking(token, &arguments);
        client.request("tools/call", params).await;

        assert_eq!(tokens(&mut client).await, vec![json!("mine"); notices]);
        assert_eq!(before.elapsed(), ms(1_050));
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_notices_come_before_the_answer() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let before = Instant::now();

    for (every_ms, count, took) in [(0, 1_000, 0), (10, 20, 200)] {
        let arguments = json!({ "progress": { "every_ms": every_ms, "count": count } });
        client
            .request("tools/call", asking(Some("t"), &arguments))
            .await;

        assert_eq!(tokens(&mut client).await.len(), count);
        assert_eq!(before.elapsed(), ms(took));
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_invented_or_of_a_finished_call_if_told() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let with = |token: &str| {
        let progress = json!({ "every_ms": 10, "count": 2, "token": token });
        asking(Some("own"), &json!({ "progress": progress }))
    };

    client.request("tools/call", with("invented")).await;
    assert_eq!(tokens(&mut client).await, ["invented-1", "invented-2"]);

    client
        .request("tools/call", asking(Some("old"), &json!({})))
        .await;
    assert_eq!(tokens(&mut client).await.len(), 0);
    client.request("tools/call", with("finished")).await;
    assert_eq!(tokens(&mut client).await, ["old", "old"]);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_call_goes_on_telling_progress() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let arguments = json!({ "stall": true, "progress": { "every_ms": 1_000 } });

    client
        .request("tools/call", asking(Some("t"), &arguments))
        .await;

    for number in 1..=100 {
        assert_eq!(client.next().await["params"]["progress"], number);
    }
}
