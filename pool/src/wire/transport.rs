//! The wire as a transport of `rmcp`.

use std::{future, sync::Arc};

use rmcp::{RoleClient, transport::Transport};
use tokio::sync::mpsc;

use super::{
    Ended, Wire,
    exchange::{Rx, Tx},
};

/// The wire is closed and takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub(crate) struct WireClosed;

/// What `rmcp` sends on and receives from.
#[derive(Debug)]
pub(crate) struct WireTransport {
    wire: Arc<Wire>,
    inbox: mpsc::Receiver<Rx>,
    made_up: mpsc::UnboundedReceiver<Rx>,
}

// === impl WireTransport ===

impl WireTransport {
    pub(super) const fn new(
        wire: Arc<Wire>,
        inbox: mpsc::Receiver<Rx>,
        made_up: mpsc::UnboundedReceiver<Rx>,
    ) -> Self {
        Self {
            wire,
            inbox,
            made_up,
        }
    }
}

impl Transport<RoleClient> for WireTransport {
    type Error = WireClosed;

    /// Enqueues within the call, not when polled: `rmcp` polls these futures in any order.
    fn send(
        &mut self,
        message: Tx,
    ) -> impl Future<Output = Result<(), WireClosed>> + Send + 'static {
        future::ready(self.wire.send(message))
    }

    /// Cancel safe: both channels are.
    async fn receive(&mut self) -> Option<Rx> {
        tokio::select! {
            biased;
            Some(reply) = self.made_up.recv() => Some(reply),
            message = self.inbox.recv() => message,
        }
    }

    async fn close(&mut self) -> Result<(), WireClosed> {
        self.wire.end(Ended::Closed);
        Ok(())
    }
}
