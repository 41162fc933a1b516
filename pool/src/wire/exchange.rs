//! The state of a wire: outbox, pending requests, progress tokens. No I/O, no clock.

#[cfg(feature = "http")]
mod carried;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use rmcp::{
    RoleClient,
    model::{
        GetExtensions as _, GetMeta, JsonRpcError, JsonRpcMessage, ProgressNotificationParam,
        ProgressToken, RequestId, ServerNotification,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
#[cfg(feature = "http")]
use steadfast_classify::Failure;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "http")]
pub(super) use carried::Taken;

use super::{
    Trace, Traffic, WireClosed,
    changes::List,
    notices::{cancel, cancelled, forget, trace_of, unreadable},
    parting::{Parting, is_parting},
    step::{Incoming, Next},
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
        if self.give_up(id).is_none() {
            // Answered meanwhile; there is nothing to give up but what it began.
            if let Some(created) = trace.task() {
                self.cancel_task(&created.task.task_id);
            }
            return None;
        }
        if !self.closed && !self.cancels_by_closing {
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

    /// Takes a message of the server: marks the flight it belongs to, and drops what
    /// belongs to none. A question that came `within` the answers to a request is about
    /// that request, and carries its trace.
    pub(crate) fn receive(&mut self, mut message: Rx, within: Option<&RequestId>) -> Incoming {
        if let JsonRpcMessage::Request(question) = &mut message
            && let Some(trace) = within.and_then(|id| self.pending.get(id)?.trace.clone())
        {
            question.request.extensions_mut().insert(trace);
        }
        match &message {
            JsonRpcMessage::Response(response) => {
                self.answer(&response.id.clone(), message, within)
            }
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => {
                self.answer(&id.clone(), message, within)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress(&progress.params);
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

    /// Takes a line that is no message; `answers` is the request that it answers, if it
    /// is an answer all the same. Whoever waits for it need not wait any longer.
    pub(crate) fn junk(
        &mut self,
        answers: Option<RequestId>,
        within: Option<&RequestId>,
    ) -> (u64, Incoming) {
        self.traffic.junk += 1;
        let incoming = match answers {
            Some(id) => self.answer(&id.clone(), unreadable(id), within),
            None => Incoming::Taken,
        };
        (self.traffic.junk, incoming)
    }

    fn answer(&mut self, id: &RequestId, message: Rx, within: Option<&RequestId>) -> Incoming {
        // Ids can be guessed: before its request was sent it is no answer.
        let sent = self.pending.get(id).is_some_and(|pending| pending.sent);
        let pending = match within {
            _ if !sent => None,
            // Whoever reads its stream sees for itself that it is answered.
            Some(own) if own == id => self.remove(id),
            _ => self.give_up(id),
        };
        let Some(pending) = pending else {
            self.late(&message);
            return Incoming::Taken;
        };
        if self.parting.answered(id) {
            return Incoming::Taken;
        }
        if let Some(trace) = pending.trace {
            trace.answer(&message);
        }
        Incoming::Forward(message)
    }

    fn progress(&mut self, told: &ProgressNotificationParam) {
        let running = self
            .tokens
            .get(&told.progress_token)
            .and_then(|id| self.pending.get(id));
        match running.and_then(|pending| pending.trace.as_ref()) {
            Some(trace) => trace.progress(told),
            None => self.traffic.stray_progress += 1,
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

    /// Removes a request that no byte of was written.
    fn take_back(&mut self, id: &RequestId) -> bool {
        let queued = self
            .outbox
            .iter()
            .position(|outgoing| outgoing.id.as_ref() == Some(id));
        match queued {
            Some(index) => drop(self.outbox.remove(index)),
            None if self.is_held_back(id) => {}
            None => return false,
        }
        self.give_up(id);
        true
    }

    /// Whether a request was taken from the outbox by a carrier that has not begun to send
    /// it.
    fn is_held_back(&self, id: &RequestId) -> bool {
        let pending = self.pending.get(id);
        pending.is_some_and(|pending| pending.carried.is_some() && !pending.sent)
    }

    /// `true` where closing its stream is all there is to cancelling a request.
    fn cancel_by_closing(&mut self, id: &RequestId) -> bool {
        if self.cancels_by_closing {
            self.give_up(id);
        }
        self.cancels_by_closing
    }

    fn remove(&mut self, id: &RequestId) -> Option<Pending> {
        let pending = self.pending.remove(id)?;
        if let Some(token) = &pending.token {
            self.tokens.remove(token);
        }
        Some(pending)
    }

    /// Removes a request, and lets go of the stream it has.
    fn give_up(&mut self, id: &RequestId) -> Option<Pending> {
        let pending = self.remove(id)?;
        if let Some(carried) = &pending.carried {
            carried.cancel();
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
