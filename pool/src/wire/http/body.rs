//! The body of a POST, which knows when it is begun.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rmcp::model::RequestId;
use tokio::sync::oneshot;

use super::super::Wire;

/// A message on its way out.
pub(super) struct MessageBody {
    bytes: Option<Bytes>,
    gate: Gate,
}

/// What happens when the first byte is asked for.
pub(super) enum Gate {
    /// The wire is asked whether the request may still be sent.
    Request(Arc<Wire>, RequestId),
    /// Whoever waits for it is told.
    Notice(Option<oneshot::Sender<Infallible>>),
}

/// The request was taken back before it was begun.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("taken back before it was sent")]
pub(super) struct TakenBack;

// === impl MessageBody ===

impl MessageBody {
    pub(super) const fn new(bytes: Bytes, gate: Gate) -> Self {
        Self {
            bytes: Some(bytes),
            gate,
        }
    }
}

impl Body for MessageBody {
    type Data = Bytes;
    type Error = TakenBack;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TakenBack>>> {
        let Some(bytes) = self.bytes.take() else {
            return Poll::Ready(None);
        };
        let may_go = match &mut self.gate {
            Gate::Request(wire, id) => wire.begin(id),
            // Dropping it tells.
            Gate::Notice(begun) => {
                drop(begun.take());
                true
            }
        };
        let frame = if may_go {
            Ok(Frame::data(bytes))
        } else {
            Err(TakenBack)
        };
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    /// Exact, so that it is not sent in chunks.
    fn size_hint(&self) -> SizeHint {
        let left = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(left as u64)
    }
}
