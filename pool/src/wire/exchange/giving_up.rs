//! Requests that nobody waits for any more.

use rmcp::model::RequestId;

use super::{Exchange, Pending, Rx};
use crate::wire::{
    Trace,
    notices::{cancel, forget},
};

// === impl Exchange ===

impl Exchange {
    /// Gives up on a request. Returns an answer to give back to `rmcp`, so that it
    /// forgets the request too.
    pub(in crate::wire) fn abandon(&mut self, trace: &Trace, reason: &str) -> Option<Rx> {
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

    /// Removes a request that no byte of was written.
    pub(super) fn take_back(&mut self, id: &RequestId) -> bool {
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
    pub(super) fn cancel_by_closing(&mut self, id: &RequestId) -> bool {
        if self.cancels_by_closing {
            self.give_up(id);
        }
        self.cancels_by_closing
    }

    /// Removes a request, and lets go of the stream it has.
    pub(super) fn give_up(&mut self, id: &RequestId) -> Option<Pending> {
        let pending = self.remove(id)?;
        if let Some(carried) = &pending.carried {
            carried.cancel();
        }
        Some(pending)
    }
}
