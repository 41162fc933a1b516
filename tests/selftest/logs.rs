//! The ledger and the events log.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use serde_json::json;
use steadfast_tests::probe::{EventKind, Events, Execution, Knobs, Ledger};

use crate::driver::{Client, Files, ms};

pub(crate) fn ledger(files: &Files) -> Vec<Execution> {
    Ledger::new(files.path("ledger")).entries().unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_execution_is_one_line() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;

    client.call("w", json!({ "tag": "a" })).await;
    client
        .call("i", json!({ "tag": "b", "is_error": "no" }))
        .await;
    client
        .call("w", json!({ "tag": "a", "rpc_error": -32603 }))
        .await;
    client.ask("tools/list", json!({})).await;

    let ledger = Ledger::new(files.path("ledger"));
    assert_eq!(ledger.count().unwrap(), 3);
    assert_eq!(ledger.count_tool("w").unwrap(), 2);
    assert_eq!(ledger.count_tool("r").unwrap(), 0);
    assert_eq!(ledger.count_tag("b").unwrap(), 1);
    let entries = ledger.entries().unwrap();
    let told: Vec<_> = entries.iter().map(|e| json!([e.id, e.seq])).collect();
    assert_eq!(json!(told), json!([[2, 1], [3, 2], [4, 3]]));
    assert!(entries.iter().all(|e| e.pid == std::process::id()));
}

#[tokio::test(start_paused = true)]
async fn a_torn_last_line_is_left_out_and_a_broken_one_is_an_error() {
    let files = Files::new();
    let path = files.path("ledger");
    let append = |text: &str| {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let ledger = Ledger::new(&path);
    assert_eq!(ledger.count().unwrap(), 0, "a missing file");

    append(r#"{"tool":"#);
    assert_eq!(ledger.count().unwrap(), 0, "only a torn line");

    std::fs::remove_file(&path).unwrap();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    client.call("w", json!({})).await;
    append(r#"{"tool":"#);
    assert_eq!(ledger.count().unwrap(), 1, "a torn line after a whole one");

    append("\n");
    assert_eq!(ledger.entries().unwrap_err().kind(), ErrorKind::InvalidData);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_line_ends_when_it_comes_or_in_time() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    client.begin("w", json!({ "delay_before_ms": 700 })).await;
    let ledger = Ledger::new(files.path("ledger"));

    let early = ledger
        .wait_for(ms(500), |entries| !entries.is_empty())
        .await;
    assert_eq!(early.unwrap_err().kind(), ErrorKind::TimedOut);

    let entries = ledger
        .wait_for(ms(500), |entries| !entries.is_empty())
        .await;
    assert_eq!(entries.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dedup_key_runs_once_over_two_processes() {
    let files = Files::new();
    let knobs = Knobs {
        dedup: Some("example/key".to_owned()),
        ..files.knobs()
    };
    let keyed = |key: &str| json!({ "name": "w", "_meta": { "example/key": key } });

    let mut repeated = Vec::new();
    for key in ["a", "a", "b", "a"] {
        let (mut client, _server) = Client::ready(knobs.clone()).await;
        let answer = client.ask("tools/call", keyed(key)).await;
        repeated.push(answer["result"]["structuredContent"]["repeated"].clone());
    }

    assert_eq!(json!(repeated), json!([false, true, false, true]));
    let keys: Vec<_> = ledger(&files).into_iter().map(|e| e.key).collect();
    assert_eq!(keys, [Some("a".to_owned()), Some("b".to_owned())]);
    let events = Events::new(files.path("events")).entries().unwrap();
    let metas = events
        .into_iter()
        .filter(|e| e.name.is_some())
        .map(|e| e.meta);
    assert_eq!(metas.flatten().count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_dedup_key_is_remembered_without_a_ledger() {
    let knobs = Knobs::from_json(r#"{"dedup":"key"}"#).unwrap();
    let (mut client, _server) = Client::ready(knobs).await;
    let keyed = json!({ "name": "w", "_meta": { "key": "a" } });

    let mut repeated = Vec::new();
    for params in [
        keyed.clone(),
        keyed,
        json!({ "name": "w" }),
        json!({ "name": "w" }),
    ] {
        let answer = client.ask("tools/call", params).await;
        repeated.push(answer["result"]["structuredContent"]["repeated"].clone());
    }

    assert_eq!(json!(repeated), json!([false, true, false, false]));
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn a_call_whose_line_cannot_be_written_is_an_error() {
    let knobs = Knobs::from_json(r#"{"ledger":"/dev/full"}"#).unwrap();
    let (mut client, _server) = Client::ready(knobs).await;

    let answer = client.call("w", json!({})).await;

    assert_eq!(answer["error"]["code"], -32603);
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_the_client_is_told_too() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    client.begin("w", json!({ "ask": "roots/list" })).await;
    let asked = client.next().await;
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } });
    client.send_bytes(format!("{reply}\n").as_bytes()).await;

    let answer = client.next().await;

    assert_eq!(asked["method"], "roots/list");
    let replied = &answer["result"]["structuredContent"]["replied"];
    assert_eq!(replied["result"], json!({ "roots": [] }));
    let events = Events::new(files.path("events")).entries().unwrap();
    assert!(
        events
            .iter()
            .any(|e| e.kind == EventKind::Reply && e.id == Some(asked["id"].clone()))
    );
}
