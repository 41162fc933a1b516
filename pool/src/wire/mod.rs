//! The wire: what is queued, sent and answered on one connection, by request.
//!
//! `rmcp` spawns a task per message and lets them race for the writer, so that a cancel
//! can overtake its request and nobody can say what was sent. Here, sending only
//! enqueues, and one task writes, first in first out, asking the [`Flight`] of each
//! request just before its first byte:
//!
//! ```text
//! rmcp ── send() ──► outbox ── writer task ──► server's input
//!                       ▲                          │
//!            abandon() ─┘ (takes back, or tells)   │
//! rmcp ◄─ receive() ─ inbox ◄── reader task ◄── server's output
//! ```
//!
//! So a call behind a stuck pipe is provably not sent, a cancel follows its request, and
//! an answer is marked as such before anybody is told that the connection is gone.
//!
//! [`Flight`]: steadfast_classify::Flight

mod changes;
mod exchange;
mod farewell;
mod framing;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(any(feature = "http", feature = "websocket"))]
mod hush;
#[cfg(any(feature = "http", feature = "websocket"))]
mod login;
mod notices;
mod parting;
mod reader;
#[cfg(any(feature = "http", feature = "websocket"))]
mod refused;
mod step;
mod support;
mod tasks;
#[cfg(test)]
mod tests;
mod trace;
mod traffic;
mod transport;
#[cfg(feature = "websocket")]
pub(crate) mod websocket;
mod writer;

use std::{
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use changes::Changes;
use exchange::{Exchange, Outgoing, Rx, Tx};
use rmcp::model::RequestMetaObject;
use step::Next;
use support::TaskOnly;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, mpsc, watch},
};

pub(crate) use changes::List;
pub(crate) use farewell::Farewell;
pub(crate) use framing::Framing;
#[cfg(any(feature = "http", feature = "websocket"))]
pub(crate) use hush::Hush;
#[cfg(any(feature = "http", feature = "websocket"))]
pub(crate) use login::Login;
#[cfg(any(feature = "http", feature = "websocket"))]
pub use refused::HttpRefused;
#[cfg(feature = "websocket")]
pub(crate) use refused::Refusal;
pub(crate) use tasks::WireTasks;
pub(crate) use trace::Trace;
pub(crate) use traffic::Traffic;
pub(crate) use transport::{WireClosed, WireTransport};

/// How many messages may wait between the reader and `rmcp`. Beyond that the server is
/// not read from: what it sends faster stays in its pipe.
const INBOX: usize = 64;

/// How long a closing wire waits for what is already queued (cancel notices) to be
/// written, before it closes the server's input all the same.
const FLUSH: Duration = Duration::from_millis(250);

/// One connection's traffic, shared by its two tasks, its transport and its calls.
#[derive(Debug)]
pub(crate) struct Wire {
    exchange: Mutex<Exchange>,
    queued: Notify,
    /// Answers made up for `rmcp`, so that it forgets an abandoned request.
    replies: mpsc::UnboundedSender<Rx>,
    ended: watch::Sender<Option<Ended>>,
    superseded: watch::Sender<Option<&'static str>>,
    changes: Changes,
    task_only: TaskOnly,
}

/// Why a wire carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server closed its output.
    OutputClosed,
    /// The server's output could not be read.
    ReadFailed,
    /// The server's input could not be written.
    WriteFailed,
    /// Something else broke, in words.
    #[cfg(feature = "websocket")]
    Broken(&'static str),
    /// We closed it.
    Closed,
}

// === impl Wire ===

impl Wire {
    /// Starts the two tasks over a pair of streams.
    ///
    /// Must be called within a tokio runtime.
    pub(crate) fn start<R, W>(
        output: R,
        input: W,
        framing: Framing,
    ) -> (Arc<Self>, WireTasks, WireTransport)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (wire, inbox, transport) = Self::open();
        let reader = tokio::spawn(reader::run(Arc::clone(&wire), output, inbox, framing));
        let writer = tokio::spawn(writer::run(Arc::clone(&wire), input));
        let tasks = WireTasks::new(&wire, &reader, writer, FLUSH);
        (wire, tasks, transport)
    }

    /// A wire that nothing carries yet. Whoever does takes messages with
    /// [`next`](Self::next), and puts what [`take`](Self::take) gives into the inbox.
    fn open() -> (Arc<Self>, mpsc::Sender<Rx>, WireTransport) {
        let (replies, made_up) = mpsc::unbounded_channel();
        let (inbox, received) = mpsc::channel(INBOX);
        let wire = Arc::new(Self {
            exchange: Mutex::default(),
            queued: Notify::new(),
            replies,
            ended: watch::Sender::new(None),
            superseded: watch::Sender::new(None),
            changes: Changes::default(),
            task_only: TaskOnly::default(),
        });
        let transport = WireTransport::new(Arc::clone(&wire), received, made_up);
        (wire, inbox, transport)
    }

    /// Puts a message of `rmcp` into the outbox.
    fn send(&self, message: Tx) -> Result<(), WireClosed> {
        let reply = self.exchange().send(message)?;
        self.reply(reply);
        self.queued.notify_one();
        Ok(())
    }

    /// Gives up on a call: takes it back if it was not begun to be sent, else tells the
    /// server, once, behind everything that is queued already. Never waits.
    pub(crate) fn abandon(&self, trace: &Trace, reason: &str) {
        let reply = self.exchange().abandon(trace, reason);
        self.reply(reply);
        self.queued.notify_one();
    }

    /// Nothing new is to be sent on it, and what is sent already may still be answered.
    #[cfg(feature = "http")]
    fn supersede(&self, why: &'static str) {
        self.superseded.send_replace(Some(why));
    }

    /// Whether nothing new is to be sent on it.
    #[cfg(feature = "http")]
    fn is_superseded(&self) -> bool {
        self.superseded.borrow().is_some()
    }

    /// Resolves once nothing new is to be sent on this wire, and says why.
    pub(crate) async fn superseded(&self) -> &'static str {
        let mut superseded = self.superseded.subscribe();
        let seen = superseded.wait_for(Option::is_some).await;
        match seen.ok().and_then(|seen| *seen) {
            Some(why) => why,
            // The sender is in this wire.
            None => future::pending().await,
        }
    }

    /// Says what each request that the wire makes has to say of us. Only needed where the
    /// protocol has no handshake.
    pub(crate) fn introduce(&self, us: RequestMetaObject) {
        self.exchange().introduce(us);
    }

    /// Tells the server that nobody waits for a task any more, behind everything that is
    /// queued already. Never waits. `false`: this wire carries nothing any more.
    pub(crate) fn cancel_task(&self, task: &str) -> bool {
        let told = self.exchange().cancel_task(task);
        self.queued.notify_one();
        told
    }

    /// Whether the server's list says that a tool runs only as a task.
    pub(crate) fn is_task_only(&self, tool: &str) -> bool {
        self.task_only.has(tool)
    }

    /// What the connection has seen so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.exchange().traffic()
    }

    /// How often the server said that a list had changed.
    pub(crate) fn changes(&self, list: List) -> watch::Receiver<u64> {
        self.changes.listen(list)
    }

    /// Whatever changed was not heard: all lists may have.
    pub(crate) fn note_all_changed(&self) {
        for list in [List::Tools, List::Prompts, List::Resources] {
            self.changes.note(list);
        }
    }

    /// Whether the last request that no call made, and that had no answer, was refused.
    #[cfg(feature = "http")]
    pub(crate) fn was_refused(&self) -> bool {
        let refusal = self.refusal();
        refusal.is_some_and(|failure| failure.class() == steadfast_classify::Class::Answered)
    }

    /// Only HTTP knows how to refuse without an answer.
    #[cfg(not(feature = "http"))]
    pub(crate) const fn was_refused(&self) -> bool {
        false
    }

    /// Resolves once nothing more can come or go on this wire.
    ///
    /// Every answer that was read before is marked on its flight by then.
    pub(crate) async fn ended(&self) -> Ended {
        let mut ended = self.ended.subscribe();
        let seen = ended.wait_for(Option::is_some).await;
        seen.ok().and_then(|seen| *seen).unwrap_or(Ended::Closed)
    }

    fn end(&self, why: Ended) {
        self.exchange().close();
        self.ended.send_if_modified(|ended| {
            let first = ended.is_none();
            ended.get_or_insert(why);
            first
        });
        self.queued.notify_one();
    }

    /// The next message to write; `None` once the wire is closed and the outbox is empty.
    async fn next(&self) -> Option<Outgoing> {
        loop {
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

    fn reply(&self, reply: Option<Rx>) {
        if let Some(reply) = reply {
            // Nobody to tell: the connection is being torn down.
            let _ = self.replies.send(reply);
        }
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
