//! A bare HTTP client: one request on one connection, and what came back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_tests::probe::{HttpProbe, Knobs, Ledger};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::driver::{Files, initialize};

/// What "soon" means where real sockets are scheduled.
pub(crate) const SOON: Duration = Duration::from_secs(3);

/// How long nothing has to come for it to count as silence.
const SILENCE: Duration = Duration::from_millis(150);

/// All that came, and how it ended.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    pub(crate) raw: String,
    pub(crate) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer was whole, and the connection stays.
    Whole,
    Closed,
    Reset,
    /// Nothing more comes, and the connection stays.
    Silent,
}

/// A probe, its files, and the session that it gave.
pub(crate) struct Visit {
    pub(crate) files: Files,
    pub(crate) probe: HttpProbe,
    pub(crate) session: Option<String>,
    next_id: u64,
}

// === impl Visit ===

impl Visit {
    /// Starts a probe with these knobs; nothing has been said yet.
    pub(crate) async fn start(knobs: Value) -> Self {
        let files = Files::new();
        let mut knobs = knobs;
        knobs["ledger"] = json!(files.path("ledger"));
        knobs["events"] = json!(files.path("events"));
        let knobs = Knobs::from_json(&knobs.to_string()).unwrap();
        Self {
            files,
            probe: HttpProbe::start(knobs).await.unwrap(),
            session: None,
            next_id: 1,
        }
    }

    /// Starts a probe with these HTTP knobs and shakes hands.
    pub(crate) async fn ready(http: Value) -> Self {
        let mut visit = Self::start(json!({ "http": http })).await;
        visit.shake_hands().await;
        visit
    }

    pub(crate) async fn shake_hands(&mut self) {
        let answer = self.ask("initialize", initialize()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.session = answer.headers.get("mcp-session-id").cloned();
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&notice).await.status, 202);
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        let address = ("127.0.0.1", self.probe.port());
        TcpStream::connect(address).await.unwrap()
    }

    pub(crate) fn message(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        message
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Seen {
        let message = self.message(method, params);
        self.post(&message).await
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Seen {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await
    }

    pub(crate) async fn post(&self, message: &Value) -> Seen {
        let request = self.bytes("POST", &[], &message.to_string());
        exchange(&mut self.connect().await, &request).await
    }

    pub(crate) async fn get(&self, headers: &[(&str, &str)]) -> Seen {
        let request = self.bytes("GET", headers, "");
        exchange(&mut self.connect().await, &request).await
    }

    /// A request with the headers that the specification asks for.
    pub(crate) fn bytes(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: probe\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            body.len()
        );
        let session = self.session.as_deref().map(|id| ("Mcp-Session-Id", id));
        for (name, value) in headers.iter().copied().chain(session) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);
        request.into_bytes()
    }

    pub(crate) fn executed(&self) -> usize {
        Ledger::new(self.files.path("ledger")).count().unwrap()
    }

    pub(crate) async fn executed_soon(&self, times: usize) {
        let ledger = Ledger::new(self.files.path("ledger"));
        let enough = ledger.wait_for(SOON, |lines| lines.len() >= times);
        enough.await.unwrap();
    }
}

// === impl Seen ===

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The events' data, each with its id.
    pub(crate) fn events(&self) -> Vec<(Option<&str>, &str)> {
        let events = self.body.split("\n\n").filter(|event| !event.is_empty());
        events
            .map(|event| (line(event, "id:"), line(event, "data:").unwrap_or("")))
            .collect()
    }
}

fn line<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    event
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Writes a request and reads until the answer is whole or nothing more comes.
pub(crate) async fn exchange(stream: &mut TcpStream, request: &[u8]) -> Seen {
    // A server that resets at once may do so before all is written.
    let _ = stream.write_all(request).await;
    read(stream).await
}

pub(crate) async fn read(stream: &mut TcpStream) -> Seen {
    let (mut raw, mut wait) = (Vec::new(), SOON);
    let end = loop {
        if is_whole(&raw) {
            break End::Whole;
        }
        match timeout(wait, stream.read_buf(&mut raw)).await {
            Err(_) => break End::Silent,
            Ok(Ok(0)) => break End::Closed,
            Ok(Err(_)) => break End::Reset,
            // What is under way has begun: the rest comes at once or not at all.
            Ok(Ok(_)) => wait = SILENCE,
        }
    };
    seen(&raw, end)
}

fn is_whole(raw: &[u8]) -> bool {
    let text = String::from_utf8_lossy(raw);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let headers = headers(head);
    match headers.get("content-length") {
        Some(length) => body.len() == length.parse::<usize>().unwrap(),
        None if headers.contains_key("transfer-encoding") => body.ends_with("0\r\n\r\n"),
        None => true,
    }
}

fn seen(raw: &[u8], end: End) -> Seen {
    let raw = String::from_utf8_lossy(raw).into_owned();
    let (head, body) = raw.split_once("\r\n\r\n").unwrap_or((&raw, ""));
    let headers = headers(head);
    let body = match headers.get("transfer-encoding") {
        Some(_) => unchunked(body),
        None => body.to_owned(),
    };
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Seen {
        status: status.unwrap_or(0),
        headers,
        body,
        raw: raw.clone(),
        end,
    }
}

fn headers(head: &str) -> BTreeMap<String, String> {
    let lines = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect()
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut text) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else {
            break;
        };
        text.push_str(&after[..size.min(after.len())]);
        rest = after.get(size + 2..).unwrap_or("");
    }
    text
}
