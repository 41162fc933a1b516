//! What leaves the server, in order, whatever carries it.

use serde_json::Value;
use tokio::sync::mpsc;

/// One thing for the writer to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Out {
    /// An answer: one JSON text.
    Answer(Vec<u8>),
    /// An answer without its line feed.
    Torn(Vec<u8>),
    /// A notice or request: one JSON text.
    Message(Vec<u8>),
    /// A line that is no message.
    Junk(String),
    /// A line of so many bytes.
    Flood(u64),
    /// No further byte leaves the server.
    Close,
    /// Exit once everything before this is written.
    Exit(i32),
}

/// The sending side; unbounded, so that a client that reads nothing never blocks the reader.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<Out>,
    /// Answers carry what 2026-07-28 asks for.
    is_stateless: bool,
}

// === impl Outbox ===

impl Outbox {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Out>) {
        let (queue, receiver) = mpsc::unbounded_channel();
        let outbox = Self {
            queue,
            is_stateless: false,
        };
        (outbox, receiver)
    }

    /// The same for the answer to a request of 2026-07-28.
    pub(crate) fn stateless(&self) -> Self {
        Self {
            is_stateless: true,
            ..self.clone()
        }
    }

    pub(crate) fn push(&self, out: Out) {
        let out = match out {
            Out::Answer(text) if self.is_stateless => Out::Answer(completed(text)),
            out => out,
        };
        // The writer only goes when the server ends.
        let _ = self.queue.send(out);
    }

    pub(crate) fn answer(&self, message: &Value) {
        self.push(Out::Answer(message.to_string().into_bytes()));
    }

    pub(crate) fn message(&self, message: &Value) {
        self.push(Out::Message(message.to_string().into_bytes()));
    }
}

/// Adds the fields that a result has from 2026-07-28 on: that it is whole, and for whom it
/// could be kept.
fn completed(text: Vec<u8>) -> Vec<u8> {
    let Ok(mut message) = serde_json::from_slice::<Value>(&text) else {
        return text;
    };
    let Some(Value::Object(result)) = message.get_mut("result") else {
        return text;
    };
    let mut fill = |name: &str, value: Value| {
        result.entry(name).or_insert(value);
    };
    fill("resultType", "complete".into());
    fill("ttlMs", 0.into());
    fill("cacheScope", "private".into());
    message.to_string().into_bytes()
}
