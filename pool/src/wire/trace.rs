//! What a request carries to the wire.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use rmcp::model::{CreateTaskResult, ProgressNotificationParam, RequestId};
use steadfast_classify::{Failure, Flight};

use super::{
    exchange::Rx,
    parting::{is_question, task_of},
};
use crate::{ask::Owner, progress::Progress, ties::Ties};

/// Travels in the extensions of a request, so that the wire can mark its flight and the
/// call can find its request again. Changed only under the lock of the exchange.
#[derive(Debug)]
pub(crate) struct Trace {
    flight: Flight,
    ties: Option<Arc<Ties>>,
    id: OnceLock<RequestId>,
    abandoned: AtomicBool,
    answered: AtomicBool,
    task: OnceLock<CreateTaskResult>,
    refused: AtomicBool,
    verdict: OnceLock<Failure>,
}

// === impl Trace ===

impl Trace {
    pub(crate) const fn new(flight: Flight) -> Self {
        Self::tied(flight, None)
    }

    /// The same for a call that somebody wants to hear of.
    pub(crate) const fn tied(flight: Flight, ties: Option<Arc<Ties>>) -> Self {
        Self {
            flight,
            ties,
            id: OnceLock::new(),
            abandoned: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            task: OnceLock::new(),
            refused: AtomicBool::new(false),
            verdict: OnceLock::new(),
        }
    }

    pub(crate) const fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Notes what the server told of the request, and passes it on.
    pub(super) fn progress(&self, told: &ProgressNotificationParam) {
        self.flight.progress();
        // Tokens can be guessed: before its request was sent it is about nothing.
        let sent = self.flight.sent_at().is_some();
        if let Some(ties) = self.ties.as_ref().filter(|_| sent) {
            ties.alive();
            ties.report(Progress {
                progress: Some(told.progress),
                total: told.total,
                message: told.message.clone(),
                attempt: 0,
            });
        }
    }

    /// Notes an answer. One that begins a task, or asks for something, is not the last word
    /// about the call, whose limits go on.
    pub(super) fn answer(&self, answer: &Rx) {
        let task = task_of(answer);
        if let Some(task) = task {
            let _ = self.task.set(task.clone());
        }
        if task.is_some() || is_question(answer) {
            self.flight.progress();
        } else {
            self.flight.answered();
        }
        if let Some(ties) = &self.ties {
            ties.alive();
        }
        self.answered.store(true, Ordering::Release);
    }

    /// The call that the request is of, where its session answers questions.
    pub(crate) fn owner(&self) -> Option<&Arc<Owner>> {
        self.ties.as_ref()?.owner.as_ref()
    }

    /// Whether an answer was read, be it not the last.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// The task that the answer says was begun.
    pub(crate) fn task(&self) -> Option<&CreateTaskResult> {
        self.task.get()
    }

    /// Whether the request provably never left: it was taken back in time, or the very
    /// first write of it was refused.
    ///
    /// Asking takes it back if it still can be.
    pub(crate) fn never_left(&self) -> bool {
        self.flight.withdraw() || self.refused.load(Ordering::Acquire)
    }

    /// What became of the request, where the wire knows that there will be no answer.
    pub(crate) fn verdict(&self) -> Option<Failure> {
        self.verdict.get().cloned()
    }

    #[cfg(feature = "http")]
    pub(super) fn set_verdict(&self, failure: Failure) {
        // The first word about a request is the last.
        let _ = self.verdict.set(failure);
    }

    pub(super) fn id(&self) -> Option<&RequestId> {
        self.id.get()
    }

    pub(super) fn set_id(&self, id: &RequestId) {
        // One trace, one request: a second attempt has a trace of its own.
        let _ = self.id.set(id.clone());
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    pub(super) fn set_abandoned(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(super) fn set_refused(&self) {
        self.refused.store(true, Ordering::Release);
    }
}
