//! Faults of one call: when it runs, how it ends, what it answers.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_tests::probe::{CallKnobs, Knobs};
use tokio::time::Instant;

use crate::driver::{Client, Files, calls, ended, ms};
use crate::logs::ledger;

#[tokio::test(start_paused = true)]
async fn a_healthy_call_answers_with_its_echo() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;

    for (arguments, text) in [
        (json!({}), "ok"),
        (json!({ "echo": "hello" }), "hello"),
        (json!({ "echo": [1, null] }), "[1,null]"),
        (json!({ "bytes": 3, "echo": 1 }), "xxx"),
    ] {
        let answer = client.call("w", arguments.clone()).await;

        let result = &answer["result"];
        assert_eq!(result["content"][0]["text"], text, "{arguments}");
        assert_eq!(result["isError"], false, "{arguments}");
        assert_eq!(result["structuredContent"]["tool"], "w");
        assert_eq!(result["structuredContent"]["echo"], arguments["echo"]);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_at_the_same_time() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let before = Instant::now();

    let slow = client.begin("w", json!({ "delay_ms": 500 })).await;
    let fast = client.begin("w", json!({ "delay_ms": 100 })).await;

    assert_eq!(client.next().await["id"], fast);
    assert_eq!(client.next().await["id"], slow);
    assert_eq!(before.elapsed(), ms(500));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_call_holds_up_all_others() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let before = Instant::now();

    let slow = client
        .begin("w", json!({ "delay_ms": 500, "blocking": true }))
        .await;
    let ping = client.request("ping", json!({})).await;

    assert_eq!(client.next().await["id"], slow);
    assert_eq!(before.elapsed(), ms(500));
    assert_eq!(client.next().await["id"], ping);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_call_has_executed_and_never_answers() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;

    client.begin("w", json!({ "stall": true })).await;

    assert!(client.hears_nothing_for(ms(3_600_000)).await);
    assert_eq!(ledger(&files).len(), 1);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn waiting_before_executing_leaves_no_line() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;

    let id = client.begin("w", json!({ "delay_before_ms": 500 })).await;
    assert!(client.hears_nothing_for(ms(499)).await);
    client.cancel(id).await;

    assert!(client.hears_nothing_for(ms(1_000)).await);
    assert_eq!(ledger(&files).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn random_waits_change_the_order_of_answers() {
    let jitter = CallKnobs {
        jitter_ms: 1_000,
        ..CallKnobs::default()
    };
    let (asked, answered) = forty_calls(jitter).await;

    let ids: Vec<_> = answered.iter().map(|(id, _)| *id).collect();
    assert_ne!(ids, asked);
    assert!(answered.iter().all(|(_, took)| *took <= ms(1_000)));

    let none = CallKnobs::default();
    let (asked, answered) = forty_calls(none).await;
    let ids: Vec<_> = answered.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, asked);
}

#[tokio::test(start_paused = true)]
async fn some_calls_are_slow_at_random() {
    let slow = CallKnobs {
        slow_percent: 50,
        slow_ms: 5_000,
        ..CallKnobs::default()
    };

    let (_, answered) = forty_calls(slow).await;

    let late = answered
        .iter()
        .filter(|(_, took)| *took == ms(5_000))
        .count();
    let soon = answered.iter().filter(|(_, took)| took.is_zero()).count();
    assert_eq!(late + soon, 40);
    assert!((5..35).contains(&late), "{late} of 40 were slow");
}

/// The ids of 40 calls made at once, and of their answers with the time each took.
async fn forty_calls(call: CallKnobs) -> (Vec<u64>, Vec<(u64, Duration)>) {
    let knobs = Knobs {
        seed: Some(7),
        call,
        ..Knobs::default()
    };
    let (mut client, _server) = Client::ready(knobs).await;
    let before = Instant::now();
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        asked.push(client.begin("w", json!({})).await);
    }
    for _ in 0..40 {
        let id = client.next().await["id"].as_u64().unwrap();
        answered.push((id, before.elapsed()));
    }
    (asked, answered)
}

#[tokio::test(start_paused = true)]
async fn it_exits_before_or_after_the_execution_or_the_answer() {
    for (knob, executed, answers) in [
        ("exit_before", 0, false),
        ("exit_after", 1, false),
        ("exit_answered", 1, true),
    ] {
        let files = Files::new();
        let (mut client, server) = Client::ready(files.knobs()).await;

        client.begin("w", json!({ knob: 137 })).await;

        assert_eq!(ended(server).await, 137, "{knob}");
        assert_eq!(!client.line().await.is_empty(), answers, "{knob}");
        assert!(client.line().await.is_empty(), "{knob}");
        assert_eq!(ledger(&files).len(), executed, "{knob}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_exits_after_so_many_calls() {
    let knobs = r#"{"process":{"exit_after_calls":3,"exit_code":9}}"#;
    let (mut client, server) = Client::ready(Knobs::from_json(knobs).unwrap()).await;

    for _ in 0..3 {
        client.call("w", json!({})).await;
    }

    assert!(client.line().await.is_empty());
    assert_eq!(ended(server).await, 9);
}

#[tokio::test(start_paused = true)]
async fn errors_are_answered_as_told() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;

    let answer = client.call("w", json!({ "is_error": "not found" })).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "not found");

    let asked = json!({ "rpc_error": -32603, "rpc_message": "no", "rpc_data": [1] });
    let answer = client.call("w", asked).await;
    let want = json!({ "code": -32603, "message": "no", "data": [1] });
    assert_eq!(answer["error"], want);

    let answer = client.call("nobody", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    let answer = client.ask("no/such", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_doubled_misdirected_or_unreadable_as_told() {
    type Want = fn(u64) -> Vec<String>;
    let cases: [(Value, Want); 4] = [
        (json!({ "raw": "{id}: half {" }), |id| {
            vec![format!("{id}: half {{\n")]
        }),
        (json!({ "result": {}, "answer_again": 2 }), |id| {
            vec![format!("{}\n", minimal(&json!(id))); 3]
        }),
        (json!({ "result": {}, "answer_id": "nobody" }), |_| {
            vec![format!("{}\n", minimal(&json!("nobody")))]
        }),
        (json!({ "result": 7 }), |id| {
            let line = minimal(&json!(id)).replace("{}", "7");
            vec![format!("{line}\n")]
        }),
    ];
    let (mut client, _server) = Client::ready(Knobs::default()).await;

    for (arguments, want) in cases {
        let id = client.begin("w", arguments.clone()).await;
        for want in want(id) {
            assert_eq!(client.text().await, want, "{arguments}");
        }
        assert!(client.hears_nothing_for(ms(100)).await, "{arguments}");
    }
}

fn minimal(id: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_line_has_the_length_it_is_told() {
    let (mut client, _server) = Client::ready(Knobs::default()).await;

    for bytes in [4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 1 << 20] {
        client.begin("w", json!({ "line_bytes": bytes })).await;

        let line = client.line().await;
        assert_eq!(line.len(), bytes);
        serde_json::from_slice::<Value>(&line).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn bad_bytes_stand_in_the_text_only() {
    let (mut client, _server) = Client::ready(calls(CallKnobs::default())).await;

    let id = client
        .begin("w", json!({ "bad_utf8": true, "echo": "é" }))
        .await;

    let line = client.line().await;
    assert!(std::str::from_utf8(&line).is_err());
    let place = line
        .windows(2)
        .position(|pair| pair == b"\xff\xfe")
        .unwrap();
    let mended = [&line[..place], &line[place + 2..]].concat();
    let answer: Value = serde_json::from_slice(&mended).unwrap();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["content"][0]["text"], "é");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_line_end_is_followed_by_the_end() {
    let (mut client, server) = Client::ready(Knobs::default()).await;

    client
        .begin("w", json!({ "no_newline": true, "exit_answered": 0 }))
        .await;

    let line = client.line().await;
    assert_eq!(line.last(), Some(&b'}'));
    serde_json::from_slice::<Value>(&line).unwrap();
    assert!(client.line().await.is_empty());
    assert_eq!(ended(server).await, 0);
}
