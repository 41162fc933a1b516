//! WebSockets: what the knobs say, seen by a client of another make.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use steadfast_tests::probe::{EventKind, Events, Knobs, Ledger};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message, error::ProtocolError};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::driver::{Files, initialize};

const SOON: Duration = Duration::from_secs(3);

type Socket = WebSocketStream<TcpStream>;

/// A probe in a process of its own; it is killed with this.
struct Probe {
    child: Child,
    url: String,
    files: Files,
}

#[tokio::test]
async fn each_connection_is_a_client_of_its_own() {
    let probe = Probe::start(&json!({"on_exit": "close", "close_code": 1011}));
    let mut dies = probe.connect().await.unwrap();
    let mut lives = probe.connect().await.unwrap();

    let call = |tag: &str| json!({"name": "w", "arguments": {"tag": tag, "echo": tag}});
    send(&mut dies, 1, "initialize", initialize()).await;
    assert_eq!(receive(&mut dies).await["id"], 1);
    let last = json!({"name": "w", "arguments": {"tag": "last", "exit_answered": 0}});
    send(&mut dies, 2, "tools/call", last).await;
    assert_eq!(receive(&mut dies).await["id"], 2);
    let Some(Ok(Message::Close(Some(goodbye)))) = dies.next().await else {
        panic!("no close frame");
    };
    assert_eq!(u16::from(goodbye.code), 1011);

    send(&mut lives, 7, "tools/call", call("lives")).await;
    let answer = receive(&mut lives).await;
    assert_eq!(answer["result"]["content"][0]["text"], "lives");
    let ledger = Ledger::new(probe.files.path("ledger"));
    assert_eq!(ledger.entries().unwrap().len(), 2);
}

#[tokio::test]
async fn an_exit_ends_the_connection_as_it_is_told() {
    for (on_exit, code) in [("eof", None), ("reset", None), ("process", Some(3))] {
        let mut probe = Probe::start(&json!({"on_exit": on_exit}));
        let mut socket = probe.connect().await.unwrap();
        let dies = json!({"name": "w", "arguments": {"exit_after": 3}});

        send(&mut socket, 1, "tools/call", dies).await;
        let end = timeout(SOON, socket.next()).await.unwrap();

        match (on_exit, end) {
            ("reset", Some(Err(Error::Io(_)))) => {}
            ("reset", end) => panic!("no reset: {end:?}"),
            (_, Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)))) => {}
            (_, end) => panic!("{on_exit}: {end:?}"),
        }
        if let Some(code) = code {
            assert_eq!(probe.child.wait().unwrap().code(), Some(code));
        } else {
            assert!(probe.connect().await.is_ok(), "{on_exit}: it lives on");
        }
    }
}

#[tokio::test]
async fn a_close_frame_is_answered_unless_it_is_ignored() {
    for ignore_close in [false, true] {
        let probe = Probe::start(&json!({"ignore_close": ignore_close}));
        let mut socket = probe.connect().await.unwrap();

        socket.close(None).await.unwrap();

        let events = Events::new(probe.files.path("events"));
        let told = |kind| {
            move |seen: &[_]| {
                seen.iter()
                    .any(|event: &steadfast_tests::probe::Event| event.kind == kind)
            }
        };
        events.wait_for(SOON, told(EventKind::Close)).await.unwrap();
        let limit = if ignore_close {
            Duration::from_millis(150)
        } else {
            SOON
        };
        let answered = timeout(limit, socket.next()).await;
        assert_eq!(answered.is_ok(), !ignore_close, "{answered:?}");
    }
}

#[tokio::test]
async fn an_upgrade_is_refused_as_often_as_it_is_told() {
    let probe = Probe::start(&json!({
        "status": 503, "times": 1, "body": "later", "headers": {"Retry-After": "1"},
    }));

    let refused = probe.connect().await.unwrap_err();

    let Error::Http(response) = refused else {
        panic!("{refused}");
    };
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.body().as_deref(), Some(&b"later"[..]));
    assert!(probe.connect().await.is_ok());
}

// === impl Probe ===

impl Probe {
    fn start(websocket: &Value) -> Self {
        let files = Files::new();
        let knobs = json!({
            "websocket": websocket, "ledger": files.path("ledger"), "events": files.path("events"),
        });
        let knobs = Knobs::from_json(&knobs.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_probe"))
            .args(["--knobs", &knobs.to_json().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, url, files }
    }

    async fn connect(&self) -> Result<Socket, Error> {
        let address = self
            .url
            .trim_start_matches("ws://")
            .trim_end_matches("/mcp");
        let stream = TcpStream::connect(address).await.map_err(Error::Io)?;
        let mut request = self.url.as_str().into_client_request()?;
        let protocol = HeaderValue::from_static("mcp");
        request
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        let (socket, _) = client_async(request, stream).await?;
        Ok(socket)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn send(socket: &mut Socket, id: u64, method: &str, params: Value) {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    socket
        .send(Message::text(message.to_string()))
        .await
        .unwrap();
}

async fn receive(socket: &mut Socket) -> Value {
    let message = timeout(SOON, socket.next()).await.unwrap();
    let text = message.unwrap().unwrap().into_text().unwrap();
    serde_json::from_str(&text).unwrap()
}
