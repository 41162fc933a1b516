//! Faults of the byte stream.

use serde_json::{Value, json};
use steadfast_tests::probe::Knobs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::driver::{Client, Files, Server, ended, initialize, ms};
use crate::logs::ledger;

fn wire(knobs: &Value) -> (Client, Server) {
    Client::start(Knobs::from_json(&json!({ "wire": knobs }).to_string()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn junk_stands_where_it_is_told() {
    let knobs = json!({ "junk_first": ["a", "b"], "junk_between": "-", "junk_echo": "heard" });
    let (mut client, _server) = wire(&knobs);

    assert_eq!(client.text().await, "a\n");
    assert_eq!(client.text().await, "b\n");
    client.request("initialize", initialize()).await;
    assert_eq!(client.text().await, "heard\n");
    assert_eq!(client.text().await, "-\n");
    assert_eq!(client.next().await["id"], 1);
    client.notify("notifications/initialized", json!({})).await;
    assert_eq!(client.text().await, "heard\n");
    client.request("ping", json!({})).await;
    assert_eq!(client.text().await, "heard\n");
    assert_eq!(client.text().await, "-\n");
    assert_eq!(client.next().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn lines_have_bad_bytes_marks_and_ends_as_told() {
    let (mut client, _server) = wire(&json!({ "bad_line": true, "bom": true, "crlf": true }));

    for id in 1..=2_u64 {
        client.request("ping", json!({})).await;

        assert_eq!(client.line().await, b"\xff\xfe\r\n");
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        let mark = if id == 1 { "\u{feff}" } else { "" };
        assert_eq!(client.text().await, format!("{mark}{answer}\r\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_come_in_pieces() {
    for piece in [1, 7, 4_096, 65_536] {
        let (mut client, _server) = wire(&json!({ "piece": piece, "piece_gap_ms": 1 }));
        client
            .begin("w", json!({ "line_bytes": 9_000, "echo": "zwölf" }))
            .await;

        let (mut sizes, mut line) = (Vec::new(), Vec::new());
        while line.last() != Some(&b'\n') {
            // With a gap after each piece, one read is one piece.
            let mut buffer = vec![0; 100_000];
            let size = client.input.get_mut().read(&mut buffer).await.unwrap();
            line.extend(&buffer[..size]);
            sizes.push(size);
        }

        assert_eq!(line.len(), 9_000);
        serde_json::from_slice::<Value>(&line).unwrap();
        sizes.pop();
        assert!(
            sizes.iter().all(|&size| size == piece),
            "{piece}: {sizes:?}"
        );
        assert_eq!(sizes.len(), (9_000 - 1) / piece);
    }
}

#[tokio::test(start_paused = true)]
async fn collected_answers_come_in_one_write() {
    let knobs = json!({ "batch": 3, "batch_junk_bytes": 5 });
    let (mut client, _server) = wire(&knobs);
    let before = Instant::now();
    client.request("ping", json!({})).await;
    client.request("ping", json!({})).await;
    assert!(client.hears_nothing_for(ms(50)).await);
    client.request("ping", json!({})).await;

    let mut buffer = vec![0; 100_000];
    let size = client.input.get_mut().read(&mut buffer).await.unwrap();
    assert_eq!(before.elapsed(), ms(50));
    let text = std::str::from_utf8(&buffer[..size]).unwrap();
    let pong = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "result": {} });
    let want = format!("{}\nxxxxx\n{}\nxxxxx\n{}\n", pong(1), pong(2), pong(3));
    assert_eq!(text, want);

    // Too few for a batch: they come after a while.
    client.request("ping", json!({})).await;
    assert!(client.hears_nothing_for(ms(99)).await);
    assert_eq!(client.next().await["id"], 4);
}

#[tokio::test(start_paused = true)]
async fn collected_answers_are_shuffled_if_told() {
    let knobs = r#"{"seed": 1, "wire": {"batch": 20, "shuffle": true}}"#;
    let (mut client, _server) = Client::start(Knobs::from_json(knobs).unwrap());
    let mut asked = Vec::new();
    for _ in 0..20 {
        asked.push(client.request("ping", json!({})).await);
    }

    let mut answered = Vec::new();
    for _ in 0..20 {
        answered.push(client.next().await["id"].as_u64().unwrap());
    }

    assert_ne!(answered, asked);
    answered.sort_unstable();
    assert_eq!(answered, asked);
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_is_streamed_before_the_answer() {
    const BYTES: u64 = 5 << 20;
    let (mut client, _server) = wire(&json!({}));
    let id = client
        .begin("w", json!({ "stdout_line_bytes": BYTES }))
        .await;

    let line = client.line().await;

    assert_eq!(line.len() as u64, BYTES + 1);
    assert!(line[..line.len() - 1].iter().all(|&byte| byte == b'x'));
    assert_eq!(client.next().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn stdout_closes_and_the_server_lives_on() {
    let files = Files::new();
    let (mut client, server) = Client::ready(files.knobs()).await;

    client.begin("w", json!({ "close_stdout": true })).await;
    assert!(client.line().await.is_empty());

    client.begin("w", json!({})).await;
    tokio::time::sleep(ms(100)).await;
    assert_eq!(ledger(&files).len(), 2);
    client.output = None;
    assert_eq!(ended(server).await, 0);
}

#[tokio::test(start_paused = true)]
async fn stdout_closes_after_so_many_messages() {
    let (mut client, _server) = wire(&json!({ "close_stdout_after": 2 }));

    client.ask("ping", json!({})).await;
    client.ask("ping", json!({})).await;
    client.request("ping", json!({})).await;

    assert!(client.line().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn reading_stops_with_stdin_open() {
    let (mut client, server) = wire(&json!({ "stop_reading_after": 1 }));
    client.ask("ping", json!({})).await;

    let flood = vec![b'x'; 1 << 20];
    let stuck = client.output.as_mut().unwrap().write_all(&flood);
    assert!(tokio::time::timeout(ms(60_000), stuck).await.is_err());
    assert!(!server.is_finished());
}

#[tokio::test(start_paused = true)]
async fn stdin_closes_and_the_server_lives_on() {
    let (mut client, server) = wire(&json!({ "close_stdin_after": 1 }));
    client.ask("ping", json!({})).await;

    let written = client.output.as_mut().unwrap().write_all(b"more\n").await;

    assert!(written.is_err());
    assert!(client.hears_nothing_for(ms(60_000)).await);
    assert!(!server.is_finished());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_ends_the_server_unless_told() {
    let files = Files::new();
    let goodbye = files.path("goodbye");
    let process = |more: Value| {
        let mut process = json!({ "goodbye": goodbye, "eof_delay_ms": 500 });
        process
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        Knobs::from_json(&json!({ "process": process }).to_string()).unwrap()
    };

    let (mut client, server) = Client::start(process(json!({ "ignore_eof": true })));
    client.output = None;
    assert!(client.hears_nothing_for(ms(60_000)).await);
    assert!(!server.is_finished());
    assert!(!goodbye.exists());

    let before = Instant::now();
    let (mut client, server) = Client::start(process(json!({})));
    client.output = None;
    assert_eq!(ended(server).await, 0);
    assert_eq!(before.elapsed(), ms(500));
    assert_eq!(std::fs::read_to_string(&goodbye).unwrap(), "bye\n");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_on_when_a_server_has_ended_or_was_dropped() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let stalled = json!({ "stall": true });

    let (mut client, server) = Client::ready(Knobs::default()).await;
    client.begin("w", stalled.clone()).await;
    client.output = None;
    ended(server).await;
    tokio::task::yield_now().await;
    assert_eq!(alive(), 0);

    let (mut client, server) = Client::ready(Knobs::default()).await;
    client.begin("w", stalled).await;
    client.ask("ping", json!({})).await;
    assert!(alive() > 1);
    server.abort();
    assert!(client.line().await.is_empty());
    tokio::task::yield_now().await;
    assert_eq!(alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_has_gone_does_not_end_the_server() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    client.input = tokio::io::BufReader::new(Box::new(tokio::io::empty()));

    client.begin("w", json!({})).await;
    client.begin("w", json!({})).await;
    tokio::time::sleep(ms(100)).await;

    assert_eq!(ledger(&files).len(), 2);
}
