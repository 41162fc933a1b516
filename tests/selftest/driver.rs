//! A bare client: it sends lines, and looks at the lines that come back.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_tests::probe::{CallKnobs, Knobs, serve};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, duplex};
use tokio::task::JoinHandle;

const PIPE: usize = 64 * 1024;

/// On a paused clock this is over as soon as nothing else can happen.
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) struct Client {
    pub(crate) input: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// `None` once the client closed it.
    pub(crate) output: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    next_id: u64,
}

/// A server that runs in this process.
pub(crate) type Server = JoinHandle<i32>;

/// A directory for the files of one probe.
pub(crate) struct Files {
    directory: TempDir,
}

// === impl Client ===

impl Client {
    pub(crate) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            input: BufReader::new(Box::new(input)),
            output: Some(Box::new(output)),
            next_id: 1,
        }
    }

    /// Starts a server in this process; nothing has been said yet.
    pub(crate) fn start(knobs: Knobs) -> (Self, Server) {
        let (to_server, server_input) = duplex(PIPE);
        let (server_output, from_server) = duplex(PIPE);
        let server = async move { serve(knobs, server_input, server_output).await.unwrap() };
        (Self::new(from_server, to_server), tokio::spawn(server))
    }

    /// Starts a server and shakes hands.
    pub(crate) async fn ready(knobs: Knobs) -> (Self, Server) {
        let (mut client, server) = Self::start(knobs);
        client.shake_hands().await;
        (client, server)
    }

    pub(crate) async fn shake_hands(&mut self) -> Value {
        let answer = self.ask("initialize", initialize()).await;
        self.notify("notifications/initialized", json!({})).await;
        answer
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.output
            .as_mut()
            .unwrap()
            .write_all(bytes)
            .await
            .unwrap();
        self.output.as_mut().unwrap().flush().await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_bytes(format!("{message}\n").as_bytes()).await;
        id
    }

    /// Sends a request; the next message must be its answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    pub(crate) async fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params).await
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await
    }

    pub(crate) async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id }))
            .await;
    }

    /// The next line as it came, with its end; empty at the end of the stream.
    pub(crate) async fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let read = self.input.read_until(b'\n', &mut line);
        let read = tokio::time::timeout(HOUR, read).await;
        read.expect("the server says nothing").unwrap();
        line
    }

    pub(crate) async fn text(&mut self) -> String {
        String::from_utf8(self.line().await).unwrap()
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.line().await;
        assert!(!line.is_empty(), "the stream has ended");
        serde_json::from_slice(&line).unwrap()
    }

    /// Nothing comes within `time`.
    pub(crate) async fn hears_nothing_for(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.input.fill_buf())
            .await
            .is_err()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

// === impl Files ===

impl Files {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A healthy probe that keeps all its logs here.
    pub(crate) fn knobs(&self) -> Knobs {
        Knobs {
            ledger: Some(self.path("ledger")),
            events: Some(self.path("events")),
            state: Some(self.path("state")),
            ..Knobs::default()
        }
    }
}

/// The exit code of a server that ends.
pub(crate) async fn ended(server: Server) -> i32 {
    let server = tokio::time::timeout(HOUR, server).await;
    server.expect("the server does not end").unwrap()
}

pub(crate) fn initialize() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "selftest", "version": "0" },
    })
}

/// A probe whose calls all have these knobs.
pub(crate) fn calls(call: CallKnobs) -> Knobs {
    Knobs {
        call,
        ..Knobs::default()
    }
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
