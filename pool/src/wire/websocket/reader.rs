//! The task that reads from the socket.

use futures::{StreamExt as _, stream::SplitStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{
    Error, Message,
    error::{CapacityError, ProtocolError},
    protocol::CloseFrame,
};
use tracing::debug;

use super::Socket;
use crate::wire::{Ended, Farewell, Wire, exchange::Rx};

/// Reads until the socket ends, marks flights, and forwards what is for `rmcp`.
pub(super) async fn run(
    wire: &Wire,
    mut stream: SplitStream<Socket>,
    inbox: mpsc::Sender<Rx>,
    farewell: Farewell,
) {
    while let Some(frame) = stream.next().await {
        let message = match &frame {
            Ok(Message::Text(text)) => wire.take(text.as_bytes(), None),
            // The protocol has only text; what is JSON in it is as good.
            Ok(Message::Binary(bytes)) => wire.take(bytes, None),
            Ok(Message::Close(frame)) => {
                farewell.say(describe(frame.as_ref()));
                wire.end(Ended::Broken("the server closed the connection"));
                // What is still to come is the end of the stream.
                None
            }
            // A ping is answered below, with the next that is read or written.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => None,
            Err(error) => {
                debug!(%error, "reading from the socket failed");
                wire.end(Ended::Broken(broken(error)));
                return;
            }
        };
        if let Some(message) = message
            && inbox.send(message).await.is_err()
        {
            wire.end(Ended::Closed);
            return;
        }
    }
    wire.end(Ended::Broken("the server closed the connection"));
}

fn describe(frame: Option<&CloseFrame>) -> String {
    match frame {
        None => "without a reason".to_owned(),
        Some(frame) if frame.reason.is_empty() => format!("code {}", u16::from(frame.code)),
        Some(frame) => format!("code {} ({})", u16::from(frame.code), frame.reason),
    }
}

const fn broken(error: &Error) -> &'static str {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            "the server sent a message that is longer than allowed"
        }
        Error::Utf8(_) => "the server sent text that is not UTF-8",
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            "the server closed the connection"
        }
        Error::Protocol(_) => "the server broke the WebSocket protocol",
        _ => "the connection broke off",
    }
}
