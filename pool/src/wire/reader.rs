//! The task that reads the server's output.

use std::sync::Arc;

use rmcp::model::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::mpsc,
};
use tracing::debug;

use super::{
    Ended, Wire,
    exchange::Rx,
    framing::{Framing, Line},
    step::Incoming,
};

const CHUNK: usize = 32 * 1024;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads until the stream ends, marks flights, and forwards what is for `rmcp`.
pub(super) async fn run<R>(
    wire: Arc<Wire>,
    output: R,
    inbox: mpsc::Sender<Rx>,
    mut framing: Framing,
) where
    R: AsyncRead + Unpin,
{
    let mut output = BufReader::with_capacity(CHUNK, output);
    let why = loop {
        let bytes = match output.fill_buf().await {
            Ok([]) => break Ended::OutputClosed,
            Ok(bytes) => bytes,
            Err(error) => {
                debug!(%error, "reading from the server failed");
                break Ended::ReadFailed;
            }
        };
        let (taken, line) = framing.take(bytes);
        output.consume(taken);
        if let Some(line) = line
            && let Some(message) = wire.read(line)
            && inbox.send(message).await.is_err()
        {
            break Ended::Closed;
        }
    };
    // A last message without an end of line is a message all the same.
    if let Some(message) = framing.finish().and_then(|line| wire.read(line)) {
        let _ = inbox.send(message).await;
    }
    wire.end(why);
}

// === impl Wire ===

impl Wire {
    /// Reads one line; returns what is for `rmcp`.
    fn read(&self, line: Line) -> Option<Rx> {
        let Line::Complete(line) = line else {
            let count = self.exchange().note_oversized();
            report("skipped a line longer than allowed", count);
            return None;
        };
        self.take(&line, None)
    }

    /// Takes one message of the server; returns what is for `rmcp`. `within` is the request
    /// in whose own stream of answers it came, where the transport has such a thing.
    pub(super) fn take(&self, message: &[u8], within: Option<&RequestId>) -> Option<Rx> {
        let line = message.trim_ascii();
        let line = line.strip_prefix(BOM).unwrap_or(line).trim_ascii_start();
        if line.is_empty() {
            return None;
        }
        let incoming = match parse(line) {
            Some(message) => {
                self.task_only.note(&message, line);
                self.exchange().receive(message, within)
            }
            None => {
                let (count, incoming) = self.exchange().junk(answered(line), within);
                report("skipped a line that is no message", count);
                incoming
            }
        };
        match incoming {
            Incoming::Forward(message) => Some(message),
            Incoming::Taken => {
                // It may have left something to say.
                self.queued.notify_one();
                None
            }
            Incoming::Changed(list) => {
                self.changes.note(list);
                None
            }
        }
    }
}

/// Bytes that are not UTF-8 are replaced rather than costing the whole answer.
fn parse(line: &[u8]) -> Option<Rx> {
    match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)).ok(),
    }
}

/// The request that a line answers which cannot be read as a whole: its numbers are too
/// large, it nests too deeply, it is neither a result nor an error.
pub(super) fn answered(line: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Head<'a> {
        // Without it, it is a line of a log.
        #[serde(borrow)]
        jsonrpc: &'a str,
        id: RequestId,
        method: Option<IgnoredAny>,
    }
    let head: Head<'_> = serde_json::from_slice(line).ok()?;
    (head.jsonrpc == "2.0" && head.method.is_none()).then_some(head.id)
}

/// Tells of the 1st, 2nd, 4th, 8th … time: a server may write junk for ever.
fn report(what: &'static str, count: u64) {
    if count.is_power_of_two() {
        debug!(count, "{what}");
    }
}
