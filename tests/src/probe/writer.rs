//! From messages to bytes: the one task that writes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::outbox::Out;
use super::pause::pause;
use super::server::Server;

const CHUNK: usize = 64 * 1024;
const STDERR_LINE: usize = 1024;
const BATCH_WAIT: Duration = Duration::from_millis(100);
const BAD_LINE: &[u8] = b"\xff\xfe";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
pub(crate) struct Writer<O> {
    server: Arc<Server>,
    /// `None` once stdout is closed, by a knob or by the reader.
    output: Option<O>,
    written: u64,
    /// Answers that wait for others, and until when.
    held: Vec<Vec<u8>>,
    due: Instant,
}

// === impl Writer ===

impl<O: AsyncWrite + Unpin> Writer<O> {
    pub(crate) fn new(server: Arc<Server>, output: O) -> Self {
        Self {
            server,
            output: Some(output),
            written: 0,
            held: Vec::new(),
            due: Instant::now(),
        }
    }

    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Out>) {
        for line in self.server.knobs.wire.junk_first.clone() {
            self.line(line.as_bytes()).await;
        }
        loop {
            let next = if self.held.is_empty() {
                Ok(queue.recv().await)
            } else {
                tokio::time::timeout_at(self.due, queue.recv()).await
            };
            match next {
                Ok(Some(out)) => self.write(out).await,
                Ok(None) => return self.release().await,
                Err(_) => self.release().await,
            }
        }
    }

    async fn write(&mut self, out: Out) {
        match out {
            Out::Answer(text) => self.answer(text).await,
            Out::Torn(text) => {
                self.release().await;
                self.before_message().await;
                self.bytes(&text).await;
                self.count().await;
            }
            Out::Message(text) => self.message(&text).await,
            Out::Junk(line) => self.line(line.as_bytes()).await,
            Out::Flood(bytes) => self.flood(bytes).await,
            Out::Close => self.close().await,
            Out::Exit(code) => {
                self.release().await;
                self.server.exit(code);
            }
        }
    }

    async fn answer(&mut self, text: Vec<u8>) {
        let wire = &self.server.knobs.wire;
        if wire.stderr_bytes > 0 {
            flood_stderr(wire.stderr_bytes, Some(STDERR_LINE)).await;
        }
        let Some(size) = wire.batch else {
            return self.message(&text).await;
        };
        if self.held.is_empty() {
            let wait = match wire.batch_wait_ms {
                0 => BATCH_WAIT,
                ms => Duration::from_millis(ms),
            };
            self.due = Instant::now() + wait;
        }
        self.held.push(text);
        if self.held.len() >= size.get() {
            self.release().await;
        }
    }

    /// Sends the held answers in one write.
    async fn release(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        let wire = &self.server.knobs.wire;
        if wire.shuffle {
            self.server.random(|random| random.shuffle(&mut held));
        }
        let last = held.len() - 1;
        let mut bytes = Vec::new();
        for (index, text) in held.iter().enumerate() {
            bytes.extend(text);
            bytes.extend(self.line_end());
            if index < last && wire.batch_junk_bytes > 0 {
                bytes.resize(bytes.len() + wire.batch_junk_bytes, b'x');
                bytes.extend(self.line_end());
            }
        }
        self.before_message().await;
        self.bytes(&bytes).await;
        for _ in held {
            self.count().await;
        }
    }

    async fn message(&mut self, text: &[u8]) {
        self.before_message().await;
        self.line(text).await;
        self.count().await;
    }

    async fn before_message(&mut self) {
        if self.server.knobs.wire.bad_line {
            self.line(BAD_LINE).await;
        }
        if let Some(junk) = self.server.knobs.wire.junk_between.clone() {
            self.line(junk.as_bytes()).await;
        }
        if self.server.knobs.wire.bom && self.written == 0 {
            self.bytes(BYTE_ORDER_MARK).await;
        }
    }

    async fn count(&mut self) {
        self.written += 1;
        let limit = self.server.knobs.wire.close_stdout_after;
        if limit.is_some_and(|limit| self.written >= limit) {
            self.close().await;
        }
    }

    async fn line(&mut self, text: &[u8]) {
        let line = [text, self.line_end()].concat();
        self.bytes(&line).await;
    }

    fn line_end(&self) -> &'static [u8] {
        if self.server.knobs.wire.crlf {
            b"\r\n"
        } else {
            b"\n"
        }
    }

    async fn flood(&mut self, bytes: u64) {
        if let Some(output) = &mut self.output
            && flood(output, bytes, None).await.is_err()
        {
            self.output = None;
        }
    }

    async fn bytes(&mut self, bytes: &[u8]) {
        let wire = &self.server.knobs.wire;
        let Some(output) = &mut self.output else {
            return;
        };
        let size = wire.piece.map_or(bytes.len().max(1), usize::from);
        for piece in bytes.chunks(size) {
            // Flushed one by one, or else a buffer below could join the pieces again.
            let written = async {
                output.write_all(piece).await?;
                output.flush().await
            };
            if written.await.is_err() {
                // The reader has gone; the server lives on until its input ends.
                self.output = None;
                return;
            }
            pause(wire.piece_gap_ms).await;
        }
    }

    async fn close(&mut self) {
        self.release_before_close().await;
        if let Some(mut output) = self.output.take() {
            // Closing is all that can be done about an output that does not close.
            let _ = output.shutdown().await;
        }
    }

    async fn release_before_close(&mut self) {
        let held = std::mem::take(&mut self.held);
        for text in held {
            self.line(&text).await;
        }
    }
}

/// Writes so many bytes to stderr, in lines of `line` bytes or in a single one.
pub(crate) async fn flood_stderr(bytes: u64, line: Option<usize>) {
    // Nobody reads: then the rest is lost, as in any program.
    let _ = flood(&mut tokio::io::stderr(), bytes, line).await;
}

async fn flood<O>(output: &mut O, bytes: u64, line: Option<usize>) -> io::Result<()>
where
    O: AsyncWrite + Unpin,
{
    let mut chunk = vec![b'x'; CHUNK];
    if let Some(line) = line {
        for end in chunk.iter_mut().skip(line - 1).step_by(line) {
            *end = b'\n';
        }
    }
    let mut left = bytes;
    while left > 0 {
        let size = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        output.write_all(&chunk[..size]).await?;
        left -= size as u64;
    }
    output.write_all(b"\n").await?;
    output.flush().await
}
