//! The task of a server that lives in this program.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::future::FutureExt;
use tokio::{
    io::DuplexStream,
    sync::watch,
    task::AbortHandle,
    time::{self, Instant},
};

use super::Closed;
use crate::{config::InProcess, process::Grace, wire::WireTasks};

/// The task of a server, which is ended with its connection.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    task: AbortHandle,
    ended: watch::Receiver<Option<&'static str>>,
}

// === impl Hosted ===

impl Hosted {
    /// Lets the server serve this connection. Must be called within a tokio runtime.
    pub(super) fn start(server: &InProcess, connection: DuplexStream) -> Self {
        let (tell, ended) = watch::channel(None);
        let server = server.clone();
        let task = tokio::spawn(async move {
            // Also what it does before its first await may panic.
            let serving = async { server.serve(connection).await };
            let how = match AssertUnwindSafe(serving).catch_unwind().await {
                Ok(()) => "its handler returned",
                Err(_panic) => "its handler panicked",
            };
            tell.send_replace(Some(how));
        });
        Self {
            task: task.abort_handle(),
            ended,
        }
    }

    /// Resolves when the task has ended, with how it did.
    pub(super) async fn exited(&self) -> Arc<str> {
        let mut ended = self.ended.clone();
        let seen = ended.wait_for(Option::is_some).await;
        let how = seen.ok().and_then(|seen| *seen);
        how.unwrap_or("its handler was aborted").into()
    }

    /// Closes the server's input, and aborts its task if that does not end it.
    pub(super) async fn shutdown(&self, mut wire: WireTasks, grace: Grace) -> Closed {
        let begun = Instant::now();
        wire.close_input().await;
        // Its output is read meanwhile: what it cannot write may be what it waits for.
        let by_itself = self.ends_within(grace.eof).await;
        self.kill();
        // A task that blocks its thread cannot be aborted.
        let gone = by_itself || self.ends_within(grace.kill).await;
        drop(wire);
        Closed {
            killed: !by_itself,
            survivors: Some(usize::from(!gone)),
            took: begun.elapsed(),
        }
    }

    async fn ends_within(&self, limit: Duration) -> bool {
        time::timeout(limit, self.exited()).await.is_ok()
    }

    /// Aborts the task; it ends where it awaits next.
    pub(super) fn kill(&self) {
        self.task.abort();
    }
}
