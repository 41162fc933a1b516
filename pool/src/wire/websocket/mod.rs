//! Carries a wire's messages over a WebSocket, one in each frame.
//!
//! ```text
//! outbox ──► writer ──► socket     a frame is handed over whole, then the next is taken
//! inbox  ◄── reader ◄── socket     pings are answered on the way
//! ```
//!
//! The next message is taken from the outbox once the one before it has gone into the
//! socket, and only if the server has not hung up meanwhile. So what waits behind a stuck
//! socket, or would have gone to a server that is not there any more, is provably not
//! sent.

mod pulse;
mod reader;
mod writer;

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::oneshot,
    task,
};
use tokio_tungstenite::WebSocketStream;

use super::{Ended, Farewell, Wire, WireTasks, WireTransport, exchange::Outgoing, step::Next};

use pulse::News;

pub(crate) use pulse::{Pulse, Tcp};

/// The largest message of a server that is read.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// How long a closing wire may take in all: to write what is queued and the close frame,
/// and to hear the server's.
const GOODBYE: Duration = Duration::from_secs(1);

/// What a WebSocket is spoken over.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

pub(crate) type Socket = WebSocketStream<Box<dyn Bytes>>;

/// Starts the tasks that carry a wire over `socket`. Must be called within a tokio runtime.
pub(crate) fn carry(
    socket: Socket,
    pulse: Pulse,
    farewell: Farewell,
) -> (Arc<Wire>, WireTasks, WireTransport) {
    let (wire, inbox, transport) = Wire::open();
    let (sink, stream) = socket.split();
    let (read, has_read) = oneshot::channel();
    let reader = {
        let wire = Arc::clone(&wire);
        tokio::spawn(async move {
            reader::run(&wire, stream, inbox, farewell).await;
            // The writer may be gone, and then nobody waits.
            let _ = read.send(());
        })
    };
    let writer = writer::run(Arc::clone(&wire), sink, pulse, has_read);
    let tasks = WireTasks::new(&wire, &reader, tokio::spawn(writer), GOODBYE);
    (wire, tasks, transport)
}

// === impl Wire ===

impl Wire {
    /// The next message to write; `None` once the wire is closed and the outbox is empty,
    /// or the other end has hung up.
    async fn next_while_alive(&self, pulse: &Pulse) -> Option<Outgoing> {
        loop {
            if self.exchange().has_queued() && !self.is_alive(pulse).await {
                self.end(Ended::Broken("the server closed the connection"));
            }
            let (next, replies) = self.exchange().next();
            replies
                .into_iter()
                .for_each(|reply| self.reply(Some(reply)));
            match next {
                Next::Write(outgoing) => return Some(outgoing),
                Next::Closed => return None,
                Next::Empty => self.queued.notified().await,
            }
        }
    }

    /// The system knows of an end before the reader does; asking it now is what proves
    /// that the next message did not go to nobody.
    async fn is_alive(&self, pulse: &Pulse) -> bool {
        if pulse.feel() == News::Bytes {
            // It may be a goodbye: let the reader have it first.
            task::yield_now().await;
        }
        pulse.feel() != News::Gone
    }
}
