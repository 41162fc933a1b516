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
}

// === impl Outbox ===

impl Outbox {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Out>) {
        let (queue, receiver) = mpsc::unbounded_channel();
        (Self { queue }, receiver)
    }

    pub(crate) fn push(&self, out: Out) {
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
