//! Sees the end of a connection, and ends everything that belongs to it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;

use super::Running;
use crate::{
    Closed, Lost,
    link::server::{KillOnDrop, Server},
    process::Grace,
    wire::{Ended, Wire, WireTasks},
};

/// How long a dead server's output may still be read: a child of it may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Ends everything that belongs to a connection, in the right order.
pub(super) struct Supervisor {
    pub(super) wire: Arc<Wire>,
    pub(super) tasks: Option<WireTasks>,
    pub(super) running: Running,
    pub(super) server: Server,
    pub(super) grace: Grace,
    pub(super) lost: watch::Sender<Option<Lost>>,
    pub(super) closed: watch::Sender<Option<Closed>>,
    pub(super) close: watch::Receiver<Option<Duration>>,
    pub(super) abandon: CancellationToken,
}

// === impl Supervisor ===

impl Supervisor {
    pub(super) async fn run(mut self) {
        let abandon = self.abandon.clone();
        let guard = KillOnDrop::new(&self.server);
        tokio::select! {
            biased;
            () = abandon.cancelled() => {}
            () = self.serve() => return,
        }
        drop(guard);
        self.lost.send_if_modified(|lost| {
            let open = lost.as_ref().is_none_or(|lost| lost.superseded);
            if open {
                *lost = Some(Lost::new("the connection was closed"));
            }
            open
        });
        self.closed
            .send_replace(Some(Closed::unproven(Duration::ZERO)));
    }

    async fn serve(&mut self) {
        let lost = tokio::select! {
            biased;
            lost = self.watch() => lost,
            why = self.wire.superseded() => {
                self.lost.send_replace(Some(Lost::superseded(why)));
                self.watch().await
            }
        };
        self.lost.send_replace(Some(lost));
        let closed = self.end().await;
        self.closed.send_replace(Some(closed));
    }

    /// Returns once the connection is over, by itself or by us.
    async fn watch(&self) -> Lost {
        tokio::select! {
            biased;
            () = self.asked_to_close() => Lost::new("we closed the connection"),
            exit = self.server.exited() => self.after_exit(exit).await,
            ended = self.wire.ended() => self.after_end(ended).await,
        }
    }

    async fn asked_to_close(&self) {
        let mut close = self.close.clone();
        // The link keeps the sender; without one there is nobody to ask.
        if close.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }

    /// The server's process ended: what it wrote before counts.
    async fn after_exit(&self, exit: Arc<str>) -> Lost {
        let _ = time::timeout(LAST_WORDS, self.wire.ended()).await;
        self.server.describe("the server ended", Some(exit))
    }

    /// The wire ended: mostly because the process did, a moment ago.
    async fn after_end(&self, ended: Ended) -> Lost {
        let reason = match ended {
            Ended::OutputClosed => "the server closed its output",
            Ended::ReadFailed => "the server's output could not be read",
            Ended::WriteFailed => "the server closed its input",
            #[cfg(feature = "websocket")]
            Ended::Broken(what) => what,
            Ended::Closed => "we closed the connection",
        };
        let exit = self.server.last_words(LAST_WORDS).await;
        self.server.describe(reason, exit)
    }

    /// Input first, then what stands behind it, then what we hold of it.
    async fn end(&mut self) -> Closed {
        let grace = self.closing();
        let closed = match self.tasks.take() {
            Some(tasks) => self.server.shutdown(tasks, grace).await,
            None => Closed::default(),
        };
        self.running.cancellation_token().cancel();
        closed
    }

    /// The steps of the end, shortened where the pool has less time.
    fn closing(&self) -> Grace {
        let limit = *self.close.borrow();
        limit.map_or(self.grace, |limit| self.grace.within(limit))
    }
}
