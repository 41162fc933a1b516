//! What the server sends.

use rmcp::model::{
    GetExtensions as _, JsonRpcError, JsonRpcMessage, ProgressNotificationParam, RequestId,
    ServerNotification,
};

use super::{Exchange, Rx};
use crate::wire::{changes::List, notices::unreadable, step::Incoming};

// === impl Exchange ===

impl Exchange {
    /// Takes a message of the server: marks the flight it belongs to, and drops what
    /// belongs to none. A question that came `within` the answers to a request is about
    /// that request, and carries its trace.
    pub(in crate::wire) fn receive(
        &mut self,
        mut message: Rx,
        within: Option<&RequestId>,
    ) -> Incoming {
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
    pub(in crate::wire) fn junk(
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
        self.in_time(&message);
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
}
