//! The task that writes to the socket.

use std::sync::Arc;

use futures::{SinkExt as _, stream::SplitSink};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::{
    Error, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};
use tracing::debug;

use super::{Pulse, Socket};
use crate::wire::{Ended, Wire, exchange::Outgoing};

/// Writes what is queued, first in first out, until the wire is closed; then says goodbye
/// and waits until the server has heard it, which is when nothing more is to be read.
pub(super) async fn run(
    wire: Arc<Wire>,
    mut sink: SplitSink<Socket, Message>,
    pulse: Pulse,
    has_read: oneshot::Receiver<()>,
) {
    while let Some(outgoing) = wire.next_while_alive(&pulse).await {
        if let Err(error) = write(&mut sink, &outgoing).await {
            debug!(%error, "writing to the socket failed");
            wire.end(Ended::Broken("the connection broke off"));
            return;
        }
    }
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    // The server may have said goodbye itself, or be gone.
    if sink.send(Message::Close(Some(goodbye))).await.is_ok() {
        let _ = has_read.await;
    }
}

/// Hands one message over whole, so that the next can still be taken back until then.
async fn write(sink: &mut SplitSink<Socket, Message>, outgoing: &Outgoing) -> Result<(), Error> {
    let text = serde_json::to_string(&outgoing.message).map_err(|error| Error::Io(error.into()))?;
    sink.send(Message::text(text)).await
}
