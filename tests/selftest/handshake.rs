//! Faults before a client can use the server.

use serde_json::{Value, json};
use steadfast_tests::probe::{Events, Knobs, StartKnobs};
use tokio::time::Instant;

use crate::driver::{Client, Files, ended, initialize, ms};

fn start(start: StartKnobs) -> Knobs {
    Knobs {
        start,
        ..Knobs::default()
    }
}

async fn handshake(knobs: StartKnobs, asked: &str) -> Value {
    let (mut client, _server) = Client::start(start(knobs));
    let params = json!({ "protocolVersion": asked });
    client.ask("initialize", params).await
}

#[tokio::test(start_paused = true)]
async fn a_healthy_probe_speaks_each_version_and_offers_the_newest() {
    for (asked, want) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-12-31", "2025-11-25"),
    ] {
        let answer = handshake(StartKnobs::default(), asked).await;

        assert_eq!(answer["result"]["protocolVersion"], want, "asked {asked}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "probe");
        assert_eq!(
            answer["result"]["capabilities"]["tools"]["listChanged"],
            true
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_answered_is_as_told() {
    let told = StartKnobs {
        version: Some("1999-12-31".to_owned()),
        instructions: Some("be kind".to_owned()),
        ..StartKnobs::default()
    };
    let none = StartKnobs {
        no_version: true,
        ..StartKnobs::default()
    };

    let answer = handshake(told, "2025-06-18").await;
    assert_eq!(answer["result"]["protocolVersion"], "1999-12-31");
    assert_eq!(answer["result"]["instructions"], "be kind");

    let answer = handshake(none, "2025-06-18").await;
    assert!(answer["result"].get("protocolVersion").is_none());
    assert!(answer["result"].get("serverInfo").is_some());
}

#[tokio::test(start_paused = true)]
async fn initialize_is_refused_as_told() {
    let refusing = StartKnobs {
        rpc_error: Some(-32022),
        rpc_message: Some("not today".to_owned()),
        ..StartKnobs::default()
    };

    let answer = handshake(refusing, "2025-06-18").await;

    let want = json!({ "code": -32022, "message": "not today" });
    assert_eq!(answer["error"], want);
}

#[tokio::test(start_paused = true)]
async fn initialize_is_answered_late_or_never() {
    let late = StartKnobs {
        delay_ms: 4_000,
        ..StartKnobs::default()
    };
    let (mut client, _server) = Client::start(start(late));
    let before = Instant::now();
    client.shake_hands().await;
    assert_eq!(before.elapsed(), ms(4_000));

    let never = StartKnobs {
        never: true,
        ..StartKnobs::default()
    };
    let (mut client, server) = Client::start(start(never));
    client.request("initialize", initialize()).await;
    assert!(client.hears_nothing_for(ms(3_600_000)).await);

    // The end of input ends it all the same.
    client.output = None;
    assert_eq!(ended(server).await, 0);
}

#[tokio::test(start_paused = true)]
async fn it_exits_where_told_before_it_can_be_used() {
    let at_once = StartKnobs {
        exit: Some(3),
        ..StartKnobs::default()
    };
    let (mut client, server) = Client::start(start(at_once));
    assert_eq!(ended(server).await, 3);
    assert!(client.line().await.is_empty());

    let asked = StartKnobs {
        exit_on_initialize: Some(4),
        ..StartKnobs::default()
    };
    let (mut client, server) = Client::start(start(asked));
    client.request("initialize", initialize()).await;
    assert_eq!(ended(server).await, 4);
    assert!(client.line().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_exits_once_its_last_page_is_out() {
    let knobs = Knobs::from_json(r#"{"start":{"exit_after_list":0},"list":{"page_size":3}}"#);
    let (mut client, server) = Client::ready(knobs.unwrap()).await;

    let first = client.ask("tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    assert!(client.hears_nothing_for(ms(1_000)).await);
    let last = client.ask("tools/list", json!({ "cursor": cursor })).await;

    assert!(last["result"].get("nextCursor").is_none());
    assert!(client.line().await.is_empty());
    assert_eq!(ended(server).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_strict_probe_refuses_requests_before_the_notice() {
    let strict = StartKnobs {
        strict: true,
        ..StartKnobs::default()
    };
    let (mut client, _server) = Client::start(start(strict));
    client.ask("initialize", initialize()).await;

    let early = client.call("w", json!({})).await;
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));

    client.notify("notifications/initialized", json!({})).await;
    assert!(client.call("w", json!({})).await.get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn it_is_deaf_to_what_it_is_told_to_ignore() {
    let mute = StartKnobs {
        mute: true,
        ..StartKnobs::default()
    };
    let no_ping = StartKnobs {
        ignore_ping: true,
        ..StartKnobs::default()
    };

    let (mut client, _server) = Client::ready(start(mute)).await;
    client.request("ping", json!({})).await;
    client.request("tools/list", json!({})).await;
    client.begin("w", json!({})).await;
    assert!(client.hears_nothing_for(ms(60_000)).await);

    let (mut client, _server) = Client::ready(start(no_ping)).await;
    client.request("ping", json!({})).await;
    assert!(client.call("w", json!({})).await.get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn events_tell_what_was_received_in_order() {
    let files = Files::new();
    let (mut client, server) = Client::ready(files.knobs()).await;
    client.call("w", json!({ "tag": "a" })).await;
    client.cancel(7).await;
    client.send_bytes(b"what?\n").await;
    assert_eq!(client.next().await["error"]["code"], -32700);
    client.output = None;
    ended(server).await;

    let events = Events::new(files.path("events")).entries().unwrap();

    let told: Vec<_> = events
        .iter()
        .map(|e| json!([e.kind, e.method, e.id, e.request_id, e.name, e.tag]))
        .collect();
    let want = json!([
        ["start", null, null, null, null, null],
        ["request", "initialize", 1, null, null, null],
        [
            "notice",
            "notifications/initialized",
            null,
            null,
            null,
            null
        ],
        ["request", "tools/call", 2, null, "w", "a"],
        ["notice", "notifications/cancelled", null, 7, null, null],
        ["unreadable", null, null, null, null, null],
        ["eof", null, null, null, null, null],
    ]);
    assert_eq!(json!(told), want);
    assert!(events.is_sorted_by_key(|e| e.at_us));
    assert!(events.iter().all(|e| e.pid == std::process::id()));
}
