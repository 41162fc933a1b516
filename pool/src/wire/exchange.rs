//! The state of a wire: outbox, pending requests, progress tokens. No I/O, no clock.

#[cfg(feature = "http")]
mod carried;
mod giving_up;
mod incoming;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use rmcp::{
    RoleClient,
    model::{GetMeta, JsonRpcMessage, ProgressToken, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
#[cfg(feature = "http")]
use steadfast_classify::Failure;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http")]
pub(super) use carried::Taken;

use super::{
    Trace, Traffic, WireClosed,
    notices::{cancelled, forget, trace_of},
    parting::{Parting, is_parting},
    step::Next,
};

pub(crate) type Tx = TxJsonRpcMessage<RoleClient>;
pub(crate) type Rx = RxJsonRpcMessage<RoleClient>;

/// How many answers may wait for a server that asks and does not read. What it asks beyond
/// that gets none.
const MAX_ANSWERS: usize = 4096;

/// What is under way on one connection.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(super) outbox: VecDeque<Outgoing>,
    pub(super) pending: HashMap<RequestId, Pending>,
    tokens: HashMap<ProgressToken, RequestId>,
    /// How many answers to the server wait in the outbox.
    answers: usize,
    pub(super) traffic: Traffic,
    /// What became of a request that no call made.
    #[cfg(feature = "http")]
    refusal: Option<Failure>,
    /// Whether a request is cancelled by closing its stream, and by nothing else.
    cancels_by_closing: bool,
    pub(super) parting: Parting,
    pub(super) closed: bool,
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: Tx,
    pub(crate) id: Option<RequestId>,
    pub(crate) trace: Option<Arc<Trace>>,
}

/// A request without an answer yet.
#[derive(Debug)]
pub(super) struct Pending {
    trace: Option<Arc<Trace>>,
    token: Option<ProgressToken>,
    sent: bool,
    /// Where each request has a stream of its own: tells whoever carries it that nobody
    /// waits for more of it.
    carried: Option<CancellationToken>,
}

// === impl Pending ===

impl Pending {
    pub(super) const fn new(trace: Option<Arc<Trace>>, token: Option<ProgressToken>) -> Self {
        Self {
            trace,
            token,
            sent: false,
            carried: None,
        }
    }
}

// === impl Exchange ===

impl Exchange {
    /// Takes a message of `rmcp`. Returns an answer to give back where the request was
    /// abandoned before it came here.
    pub(crate) fn send(&mut self, message: Tx) -> Result<Option<Rx>, WireClosed> {
        if self.closed {
            return Err(WireClosed);
        }
        match &message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                let trace = trace_of(&request.request);
                let token = request.request.get_meta().get_progress_token();
                Ok(self.enqueue(message, id, trace, token))
            }
            JsonRpcMessage::Notification(notification) => {
                if let Some(id) = cancelled(&notification.notification)
                    && (self.take_back(&id) || self.cancel_by_closing(&id))
                {
                    return Ok(None);
                }
                self.push(message);
                Ok(None)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                if self.answers < MAX_ANSWERS {
                    self.answers += 1;
                    self.push(message);
                }
                Ok(None)
            }
        }
    }

    fn enqueue(
        &mut self,
        message: Tx,
        id: RequestId,
        trace: Option<Arc<Trace>>,
        token: Option<ProgressToken>,
    ) -> Option<Rx> {
        if let Some(trace) = &trace {
            trace.set_id(&id);
            if trace.is_abandoned() {
                return Some(forget(id));
            }
        }
        let token = token.filter(|_| trace.is_some());
        if let Some(token) = &token {
            self.tokens.insert(token.clone(), id.clone());
        }
        let pending = Pending::new(trace.clone(), token);
        self.pending.insert(id.clone(), pending);
        self.outbox.push_back(Outgoing {
            message,
            id: Some(id),
            trace,
        });
        None
    }

    /// Whether something waits to be written.
    #[cfg(feature = "websocket")]
    pub(crate) fn has_queued(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The next message to write, and answers to give back for requests that were
    /// withdrawn while they waited.
    pub(crate) fn next(&mut self) -> (Next, Vec<Rx>) {
        let mut replies = Vec::new();
        while let Some(outgoing) = self.outbox.pop_front() {
            // Asked under the lock, so that it is decided for `abandon` as well.
            let withdrawn = outgoing
                .trace
                .as_ref()
                .is_some_and(|trace| !trace.flight().sending());
            match &outgoing.id {
                Some(id) if withdrawn => {
                    self.remove(id);
                    replies.push(forget(id.clone()));
                }
                _ => {
                    self.note_sent(&outgoing);
                    return (Next::Write(outgoing), replies);
                }
            }
        }
        let next = if self.closed {
            Next::Closed
        } else {
            Next::Empty
        };
        (next, replies)
    }

    fn note_sent(&mut self, outgoing: &Outgoing) {
        if let Some(id) = &outgoing.id
            && let Some(pending) = self.pending.get_mut(id)
        {
            pending.sent = true;
        }
        if let JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) = outgoing.message {
            self.answers -= 1;
        }
    }

    /// Nothing more is accepted; what is queued may still be written.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        // Requests would be sent to a server whose answers nobody reads.
        self.outbox
            .retain(|outgoing| outgoing.id.is_none() || is_parting(&outgoing.message));
    }

    pub(crate) fn note_oversized(&mut self) -> u64 {
        self.traffic.oversized += 1;
        self.traffic.oversized
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            pending: self.pending.len(),
            ..self.traffic
        }
    }

    fn remove(&mut self, id: &RequestId) -> Option<Pending> {
        let pending = self.pending.remove(id)?;
        if let Some(token) = &pending.token {
            self.tokens.remove(token);
        }
        Some(pending)
    }

    fn push(&mut self, message: Tx) {
        self.outbox.push_back(Outgoing {
            message,
            id: None,
            trace: None,
        });
    }
}
