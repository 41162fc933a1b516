//! Servers that go down and come back, lose their sessions, or end.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use steadfast_tests::probe::{Cut, HttpRequests, Knobs};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::client::{End, SOON, Visit, read};
use crate::driver::Files;

#[tokio::test]
async fn a_server_that_is_down_refuses_and_comes_back_on_its_port() {
    let mut visit = Visit::ready(json!({})).await;
    let port = visit.probe.port();
    for (cut, end) in [(Cut::Reset, End::Reset), (Cut::Close, End::Closed)] {
        let mut stream = visit.taken().await;

        visit.probe.go_down(cut).await;

        assert_eq!(read(&mut stream).await.end, end);
        assert_eq!(visit.probe.connections(), 0);
        let refused = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        visit.probe.come_back().await;
        assert_eq!(
            visit.ask("ping", json!({})).await.status,
            200,
            "sessions live on"
        );
    }
}

#[tokio::test]
async fn a_fault_takes_the_server_down_for_a_while() {
    let mut visit = Visit::ready(json!({})).await;
    let fault = json!({ "cut": "reset", "at": "executed", "outage_ms": 300 });
    assert_eq!(
        visit.call("w", json!({ "http": fault })).await.end,
        End::Reset
    );

    let address = ("127.0.0.1", visit.probe.port());
    assert!(TcpStream::connect(address).await.is_err(), "it is down");
    let back = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, back).await.unwrap();
    assert_eq!(visit.call("w", json!({})).await.status, 200);
}

#[tokio::test]
async fn connections_are_cut_and_new_ones_taken() {
    let mut visit = Visit::ready(json!({})).await;
    let mut stream = visit.taken().await;
    visit.probe.cut_all(Cut::Reset);
    assert_eq!(read(&mut stream).await.end, End::Reset);
    assert_eq!(visit.ask("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn sessions_are_forgotten_and_what_runs_in_them_goes_on() {
    let mut visit = Visit::ready(json!({ "echo_session": true })).await;
    let old = visit.session.clone().unwrap();
    let message = visit.message(
        "tools/call",
        json!({ "name": "w", "arguments": { "delay_ms": 300 } }),
    );
    let request = visit.bytes("POST", &[], &message.to_string());
    let mut stream = visit.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();
    visit.executed_soon(1).await;

    visit.probe.forget_sessions();

    assert_eq!(visit.ask("ping", json!({})).await.status, 404);
    visit.session = None;
    visit.shake_hands().await;
    let late = read(&mut stream).await;
    assert_eq!((late.status, &late.headers["mcp-session-id"]), (200, &old));
    assert_ne!(visit.session, Some(old));
}

#[tokio::test]
async fn a_call_may_end_the_server() {
    let mut visit = Visit::ready(json!({})).await;
    let seen = visit.call("w", json!({ "exit_after": 9 })).await;
    assert_eq!(seen.raw, "");
    assert_ne!(seen.end, End::Silent);
    assert_eq!(visit.probe.exited().await, 9);
    assert!(
        TcpStream::connect(("127.0.0.1", visit.probe.port()))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn nothing_is_left_of_a_probe_that_was_dropped() {
    let mut visit = Visit::ready(json!({})).await;
    let seen = visit.call("w", json!({ "stall": true })).await;
    assert_eq!(seen.end, End::Silent);
    let mut stream = visit.connect().await;
    let port = visit.probe.port();

    drop(visit);

    assert_ne!(read(&mut stream).await.end, End::Silent);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let gone = async {
        while alive() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(SOON, gone).await.is_ok(),
        "{} tasks are left",
        alive()
    );
}

#[tokio::test]
async fn a_process_serves_on_a_port_of_its_own_and_again_on_the_same() {
    let files = Files::new();
    let mut knobs =
        json!({ "http": { "port_file": files.path("port"), "requests": files.path("requests") } });
    for _ in 0..2 {
        let entry = Knobs::from_json(&knobs.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_probe"))
            .args(["--probe", "--knobs", &entry.to_json().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .await
            .unwrap();
        let port: u16 = std::fs::read_to_string(files.path("port"))
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(line, format!("http://127.0.0.1:{port}/mcp\n"));

        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let seen = super::client::exchange(&mut stream, b"GET /x HTTP/1.1\r\n\r\n").await;
        assert_eq!(seen.status, 400);
        child.kill().await.unwrap();
        assert_ne!(read(&mut stream).await.end, End::Silent);
        knobs["http"]["port"] = json!(port);
    }
    let requests = HttpRequests::new(files.path("requests")).entries().unwrap();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].path, "/x");
}

#[tokio::test]
async fn a_handshake_of_tls_stalls_if_told() {
    let visit = Visit::start(json!({ "http": { "tls": "stall" } })).await;
    assert!(visit.probe.url().starts_with("https://"));
    let seen = super::client::exchange(&mut visit.connect().await, b"\x16\x03\x01").await;
    assert_eq!((seen.end, seen.raw.as_str()), (End::Silent, ""));
}

// === impl Visit ===

impl Visit {
    /// A connection that the probe has taken.
    async fn taken(&self) -> TcpStream {
        let before = self.probe.accepted();
        let stream = self.connect().await;
        let taken = async {
            while self.probe.accepted() == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, taken).await.unwrap();
        stream
    }
}
