//! One client over one WebSocket.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::super::events::EventKind;
use super::super::http::Socket;
use super::super::knobs::{Cut, OnExit, WebSocketKnobs};
use super::super::server::Server;
use super::super::stdio::connect;
use super::frame::{self, BINARY, PING, PONG, Seen, TEXT};

/// How much may lie between the socket and the server, as in a pipe.
const BUFFER: usize = 64 * 1024;

/// How long the last bytes may take to be written.
const LAST: Duration = Duration::from_secs(1);

/// What a reader and a writer of one connection share.
#[derive(Debug)]
struct Peer {
    server: Arc<Server>,
    knobs: WebSocketKnobs,
    /// The client has closed the connection.
    gone: AtomicBool,
    /// Tells of a pong.
    answered: Notify,
}

/// Serves until the client or a knob ends it. The code of an exit that ends the process.
pub(crate) async fn serve(
    socket: Socket,
    server: &Arc<Server>,
    knobs: &WebSocketKnobs,
) -> Option<i32> {
    if knobs.on_exit == OnExit::Reset {
        socket.prepare(Cut::Reset);
    }
    let peer = Arc::new(Peer {
        server: Arc::clone(server),
        knobs: knobs.clone(),
        gone: AtomicBool::new(false),
        answered: Notify::new(),
    });
    let (lines_in, input) = duplex(BUFFER);
    let (output, lines_out) = duplex(BUFFER);
    let (read, write) = split(socket);
    let (asides, aside) = mpsc::unbounded_channel();
    let reading = tokio::spawn(Arc::clone(&peer).read(read, lines_in, asides));
    let writing = tokio::spawn(Arc::clone(&peer).write(write, lines_out, aside));

    let code = connect(server, input, output).await;

    // What was written before the end still goes out.
    let _ = timeout(LAST, writing).await;
    reading.abort();
    let ends_all = knobs.on_exit == OnExit::Process && !peer.gone.load(Ordering::Relaxed);
    ends_all.then_some(code)
}

// === impl Peer ===

impl Peer {
    /// From frames to lines, until the client closes the connection.
    async fn read(
        self: Arc<Self>,
        read: ReadHalf<Socket>,
        mut lines: DuplexStream,
        asides: mpsc::UnboundedSender<Vec<u8>>,
    ) {
        let mut read = BufReader::new(read);
        loop {
            // The writer only goes with the connection, so what it is sent may be lost.
            match frame::read(&mut read, &mut lines).await {
                Ok(Seen::Ping(payload)) => {
                    let _ = asides.send(frame::frame(PONG, true, &payload));
                }
                Ok(Seen::Close) if self.knobs.ignore_close => self.server.tell(EventKind::Close),
                Ok(Seen::Pong) => self.answered.notify_one(),
                Ok(Seen::Close) => {
                    self.server.tell(EventKind::Close);
                    self.gone.store(true, Ordering::Relaxed);
                    let _ = asides.send(frame::close(Some(1000), ""));
                    return;
                }
                Err(_) => return self.gone.store(true, Ordering::Relaxed),
            }
        }
    }

    /// From lines to frames, until the server ends or closes its output.
    async fn write(
        self: Arc<Self>,
        mut write: WriteHalf<Socket>,
        lines: DuplexStream,
        mut aside: mpsc::UnboundedReceiver<Vec<u8>>,
    ) -> io::Result<()> {
        let mut lines = BufReader::new(lines);
        let mut line = Vec::new();
        loop {
            tokio::select! {
                biased;
                Some(frame) = aside.recv() => write.write_all(&frame).await?,
                read = lines.read_until(b'\n', &mut line) => {
                    if read? == 0 && line.is_empty() {
                        break;
                    }
                    self.message(&mut write, &std::mem::take(&mut line)).await?;
                }
            }
            write.flush().await?;
        }
        if !self.gone.load(Ordering::Relaxed) && self.knobs.on_exit == OnExit::Close {
            let goodbye = frame::close(self.knobs.close_code, &self.knobs.close_reason);
            write.write_all(&goodbye).await?;
            write.flush().await?;
        }
        if self.knobs.on_exit == OnExit::Reset {
            return Ok(());
        }
        write.shutdown().await
    }

    async fn message(&self, write: &mut WriteHalf<Socket>, line: &[u8]) -> io::Result<()> {
        if self.knobs.ping {
            write
                .write_all(&frame::frame(PING, true, b"there?"))
                .await?;
            write.flush().await?;
            self.answered.notified().await;
        }
        let opcode = if self.knobs.binary { BINARY } else { TEXT };
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let size = self.knobs.fragment.map(usize::from);
        write.write_all(&frame::message(opcode, text, size)).await
    }
}
