//! Requests that go out one by one, each with a stream of its own for what comes back.

use rmcp::model::RequestId;
use steadfast_classify::Failure;
use tokio_util::sync::CancellationToken;

use super::{Exchange, Outgoing, Rx};
use crate::wire::notices::forget;

/// What a carrier is to do.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "lives for one step on the stack, once per message"
)]
pub(in crate::wire) enum Taken {
    /// Carry this. The token, which a request has, is cancelled once nobody waits for
    /// more of it.
    Message(Outgoing, CancellationToken),
    Empty,
    Closed,
}

// === impl Exchange ===

impl Exchange {
    /// The next message to carry. A request counts as sent only from
    /// [`begin`](Self::begin) on; until then it can be taken back.
    pub(in crate::wire) fn take_next(&mut self) -> Taken {
        let Some(outgoing) = self.outbox.pop_front() else {
            return if self.closed {
                Taken::Closed
            } else {
                Taken::Empty
            };
        };
        let notice = outgoing.id.as_ref();
        let notice = notice.is_some_and(|id| self.is_notice(&outgoing.message, id));
        let outgoing = Outgoing {
            id: outgoing.id.filter(|_| !notice),
            ..outgoing
        };
        let token = CancellationToken::new();
        let pending = outgoing.id.as_ref().and_then(|id| self.pending.get_mut(id));
        match pending {
            Some(pending) => pending.carried = Some(token.clone()),
            None => self.note_sent(&outgoing),
        }
        Taken::Message(outgoing, token)
    }

    /// Asked just before the first byte of a request's body. `false`: it must not be sent.
    pub(in crate::wire) fn begin(&mut self, id: &RequestId) -> bool {
        if self.closed {
            return false;
        }
        let Some(pending) = self.pending.get_mut(id) else {
            return false;
        };
        let withdrawn = pending
            .trace
            .as_ref()
            .is_some_and(|trace| !trace.flight().sending());
        pending.sent = !withdrawn;
        !withdrawn
    }

    /// The server refused a request before it ran it: it may be begun again.
    pub(in crate::wire) fn refused(&mut self, id: &RequestId) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.sent = false;
        }
    }

    /// Ends a request that will have no answer; `judge` is told whether it was begun to be
    /// sent. Returns an answer to give back to `rmcp`, so that it forgets the request; the
    /// caller finds the failure in its trace.
    pub(in crate::wire) fn settle(
        &mut self,
        id: &RequestId,
        judge: impl FnOnce(bool) -> Failure,
    ) -> Option<Rx> {
        let pending = self.remove(id)?;
        let failure = judge(pending.sent);
        match pending.trace {
            Some(trace) => trace.set_verdict(failure),
            None => self.refusal = Some(failure),
        }
        Some(forget(id.clone()))
    }

    pub(in crate::wire) fn is_pending(&self, id: &RequestId) -> bool {
        self.pending.contains_key(id)
    }

    /// From now on a request is cancelled by closing its stream, and by nothing else.
    pub(in crate::wire) const fn cancel_by_closing_only(&mut self) {
        self.cancels_by_closing = true;
    }

    pub(in crate::wire) fn refusal(&self) -> Option<Failure> {
        self.refusal.clone()
    }
}
