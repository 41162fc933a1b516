//! What stands behind a connection, and ends with it.

use std::{future, sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{Closed, Lost, held::Held, hosted::Hosted};
use crate::{process::Grace, wire::WireTasks};

pub(crate) use crate::wire::Farewell;

/// What stands behind a connection.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// A process that we started.
    Process(Held),
    /// A task of this program.
    Task(Hosted),
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket")),
        allow(dead_code, reason = "this build reaches no such server")
    )]
    /// Somebody else's, somewhere else.
    Remote(Farewell),
}

/// Ends whatever stands behind a connection when it is dropped, unless it is disarmed.
#[derive(Debug)]
pub(super) struct KillOnDrop(Option<Server>);

// === impl Server ===

impl Server {
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process(held) => Some(held.pid()),
            Self::Task(_) | Self::Remote(_) => None,
        }
    }

    /// Resolves with how it ended; never, where that is not ours to see.
    pub(super) async fn exited(&self) -> Arc<str> {
        match self {
            Self::Process(held) => held.exited().await.to_string().into(),
            Self::Task(task) => task.exited().await,
            Self::Remote(_) => future::pending().await,
        }
    }

    /// How it ended, if it does within `limit` or said so itself.
    pub(super) async fn last_words(&self, limit: Duration) -> Option<Arc<str>> {
        match self {
            Self::Remote(farewell) => farewell.words(),
            Self::Process(_) | Self::Task(_) => time::timeout(limit, self.exited()).await.ok(),
        }
    }

    /// A connection to it that ended for this reason.
    pub(super) fn describe(&self, reason: &'static str, exit: Option<Arc<str>>) -> Lost {
        let stderr = match self {
            Self::Process(held) => Some(held.stderr()),
            Self::Task(_) | Self::Remote(_) => None,
        };
        Lost::new(reason).with_server(exit, stderr)
    }

    /// Ends the connection, and with it what stands behind it, step by step.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it leaves what it has not ended yet; call [`kill`](Self::kill) then.
    pub(super) async fn shutdown(&self, mut wire: WireTasks, grace: Grace) -> Closed {
        match self {
            Self::Process(held) => held.shutdown(wire, grace).await,
            Self::Task(task) => task.shutdown(wire, grace).await,
            Self::Remote(_) => {
                let begun = Instant::now();
                let all = grace.eof.saturating_add(grace.term);
                // It has its own bound; this is for a pool in a hurry.
                let _ = time::timeout(all, wire.close_input()).await;
                Closed {
                    took: begun.elapsed(),
                    ..Closed::clean()
                }
            }
        }
    }

    /// Ends what stands behind the connection before it returns, as far as it is ours.
    pub(super) fn kill(&self) {
        match self {
            Self::Process(held) => held.kill(),
            Self::Task(task) => task.kill(),
            Self::Remote(_) => {}
        }
    }
}

// === impl KillOnDrop ===

impl KillOnDrop {
    pub(super) fn new(server: &Server) -> Self {
        Self(Some(server.clone()))
    }

    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(server) = &self.0 {
            server.kill();
        }
    }
}
