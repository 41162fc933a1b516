//! A server that answers as a closure says.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{self, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    sync::mpsc,
    time,
};

type Answers = dyn Fn(&str, &Value) -> Vec<(Duration, Value)> + Send + Sync;

/// What a server says to each request but the handshake. Its clones are the same server.
#[derive(Clone)]
pub(super) struct Script {
    answers: Arc<Answers>,
    capabilities: Value,
    /// What it received, on all of its connections.
    log: Arc<Mutex<Vec<Value>>>,
}

// === impl Script ===

impl Script {
    /// `answers` gives results for a method and its parameters, each with a delay. No
    /// result is no answer, and what has a `method` is sent as it is.
    pub(super) fn new(
        capabilities: Value,
        answers: impl Fn(&str, &Value) -> Vec<(Duration, Value)> + Send + Sync + 'static,
    ) -> Self {
        Self {
            answers: Arc::new(answers),
            capabilities,
            log: Arc::default(),
        }
    }

    /// What it received of this method.
    pub(super) fn received(&self, method: &str) -> Vec<Value> {
        let log = self.log.lock().expect("no test panics under it");
        let received = log.iter().filter(|message| message["method"] == method);
        received.cloned().collect()
    }

    /// What it was told when it asked.
    pub(super) fn replies(&self) -> Vec<Value> {
        let log = self.log.lock().expect("no test panics under it");
        let replies = log.iter().filter(|message| message.get("method").is_none());
        replies.cloned().collect()
    }

    /// The methods of all that it received, in order.
    pub(super) fn methods(&self) -> Vec<String> {
        let log = self.log.lock().expect("no test panics under it");
        let methods = log.iter().map(|message| message["method"].as_str());
        methods
            .map(|method| method.unwrap_or_default().to_owned())
            .collect()
    }

    pub(super) fn serve(&self, stream: DuplexStream) {
        let (output, mut input) = io::split(stream);
        let (send, mut sent) = mpsc::unbounded_channel::<Value>();
        tokio::spawn(async move {
            while let Some(message) = sent.recv().await {
                let line = format!("{message}\n");
                if input.write_all(line.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
        let script = self.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("we write JSON");
                script.receive(&message, &send);
            }
        });
    }

    fn receive(&self, message: &Value, send: &mpsc::UnboundedSender<Value>) {
        self.log
            .lock()
            .expect("no test panics under it")
            .push(message.clone());
        let method = message["method"].as_str().unwrap_or_default();
        let answers = match method {
            "initialize" => vec![(Duration::ZERO, self.welcome())],
            _ => (self.answers)(method, &message["params"]),
        };
        for (delay, answer) in answers {
            let (send, id) = (send.clone(), message["id"].clone());
            tokio::spawn(async move {
                time::sleep(delay).await;
                // Its connection may be gone.
                let _ = send.send(envelope(&answer, &id));
            });
        }
    }

    fn welcome(&self) -> Value {
        json!({
            "protocolVersion": "2025-06-18",
            "capabilities": self.capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        })
    }
}

fn envelope(answer: &Value, id: &Value) -> Value {
    if answer.get("method").is_some() {
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message
    } else if let Some(error) = answer.get("error").filter(|_| is_only_member(answer)) {
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    } else {
        json!({"jsonrpc": "2.0", "id": id, "result": answer})
    }
}

/// A task that failed has an error too, and is a result.
fn is_only_member(answer: &Value) -> bool {
    answer.as_object().is_some_and(|answer| answer.len() == 1)
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}
