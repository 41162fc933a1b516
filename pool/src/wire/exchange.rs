//! The state of a wire: outbox, pending requests, progress tokens. No I/O, no clock.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use rmcp::{
    RoleClient,
    model::{GetMeta, JsonRpcError, JsonRpcMessage, ProgressToken, RequestId, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};

use super::{
    Trace, WireClosed,
    changes::List,
    notices::{cancel, cancelled, forget, trace_of},
};

pub(crate) type Tx = TxJsonRpcMessage<RoleClient>;
pub(crate) type Rx = RxJsonRpcMessage<RoleClient>;

/// What is under way on one connection.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    outbox: VecDeque<Outgoing>,
    pending: HashMap<RequestId, Pending>,
    tokens: HashMap<ProgressToken, RequestId>,
    traffic: Traffic,
    closed: bool,
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
struct Pending {
    trace: Option<Arc<Trace>>,
    token: Option<ProgressToken>,
}

/// What the writer is to do.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one step on the stack, once per message"
)]
pub(crate) enum Next {
    Write(Outgoing),
    Empty,
    Closed,
}

/// Where an incoming message goes.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one step on the stack, once per message"
)]
pub(crate) enum Incoming {
    /// To `rmcp`.
    Forward(Rx),
    /// Nowhere: it was for us.
    Taken,
    /// Nowhere: one of the server's lists changed.
    Changed(List),
}

/// Counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Requests that have no answer yet.
    pub(crate) pending: usize,
    /// Answers that nobody waited for any more, or ever had.
    pub(crate) late_answers: u64,
    /// Progress for a token that no running call has.
    pub(crate) stray_progress: u64,
    /// Lines that were no message.
    pub(crate) junk: u64,
    /// Lines longer than allowed.
    pub(crate) oversized: u64,
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
                    && self.take_back(&id)
                {
                    return Ok(None);
                }
                self.push(message);
                Ok(None)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                self.push(message);
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
        let pending = Pending {
            trace: trace.clone(),
            token,
        };
        self.pending.insert(id.clone(), pending);
        self.outbox.push_back(Outgoing {
            message,
            id: Some(id),
            trace,
        });
        None
    }

    /// Gives up on a request. Returns an answer to give back to `rmcp`, so that it
    /// forgets the request too.
    pub(crate) fn abandon(&mut self, trace: &Trace, reason: &str) -> Option<Rx> {
        let Some(id) = trace.id() else {
            trace.set_abandoned();
            return None;
        };
        if self.take_back(id) {
            // Removed from the outbox under the lock of the writer: it never leaves.
            let _ = trace.flight().withdraw();
            return Some(forget(id.clone()));
        }
        // Not pending: answered meanwhile, there is nothing to give up.
        self.remove(id)?;
        if !self.closed {
            self.push(cancel(id, reason));
        }
        Some(forget(id.clone()))
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
                _ => return (Next::Write(outgoing), replies),
            }
        }
        let next = if self.closed {
            Next::Closed
        } else {
            Next::Empty
        };
        (next, replies)
    }

    /// Takes a message of the server: marks the flight it belongs to, and drops what
    /// belongs to none.
    pub(crate) fn receive(&mut self, message: Rx) -> Incoming {
        match &message {
            JsonRpcMessage::Response(response) => self.answer(&response.id.clone(), message),
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => {
                self.answer(&id.clone(), message)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress(&progress.params.progress_token);
                    Incoming::Taken
                }
                ServerNotification::ToolListChangedNotification(_) => {
                    Incoming::Changed(List::Tools)
                }
                ServerNotification::PromptListChangedNotification(_) => {
                    Incoming::Changed(List::Prompts)
                }
                ServerNotification::ResourceListChangedNotification(_) => {
                    Incoming::Changed(List::Resources)
                }
                _ => Incoming::Forward(message),
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Error(_) => Incoming::Forward(message),
        }
    }

    fn answer(&mut self, id: &RequestId, message: Rx) -> Incoming {
        let Some(pending) = self.remove(id) else {
            self.traffic.late_answers += 1;
            return Incoming::Taken;
        };
        if let Some(trace) = pending.trace {
            trace.flight().answered();
        }
        Incoming::Forward(message)
    }

    fn progress(&mut self, token: &ProgressToken) {
        let running = self.tokens.get(token).and_then(|id| self.pending.get(id));
        match running.and_then(|pending| pending.trace.as_ref()) {
            Some(trace) => trace.flight().progress(),
            None => self.traffic.stray_progress += 1,
        }
    }

    /// Nothing more is accepted; what is queued may still be written.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        // Requests would be sent to a server whose answers nobody reads.
        self.outbox.retain(|outgoing| outgoing.id.is_none());
    }

    pub(crate) fn note_junk(&mut self) -> u64 {
        self.traffic.junk += 1;
        self.traffic.junk
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

    /// Removes a request that no byte of was written.
    fn take_back(&mut self, id: &RequestId) -> bool {
        let queued = self
            .outbox
            .iter()
            .position(|outgoing| outgoing.id.as_ref() == Some(id));
        let Some(index) = queued else { return false };
        self.outbox.remove(index);
        self.remove(id);
        true
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
