//! Tasks that nobody waits for any more.
//!
//! The server keeps a task when its request has been answered, so a notice that cancels the
//! request would not reach it. It is told by a request, which the wire makes by itself: there
//! may be nobody left who could.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
};

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, CreateTaskResult, GetMeta as _,
    JsonRpcMessage, RequestId, RequestMetaObject, ServerResult,
};

use super::exchange::{Exchange, Outgoing, Pending, Rx, Tx};

/// How many of these may be without an answer. A server that makes up tasks which nobody
/// asked for is not told of more.
const MAX_PENDING: usize = 256;

/// How many tasks are known that some request waited for.
const MAX_AWAITED: usize = 1024;

/// What the wire asks by itself.
#[derive(Debug, Default)]
pub(super) struct Parting {
    /// What each request has to say of us, where the protocol has no handshake.
    introduction: Option<RequestMetaObject>,
    made: u64,
    pending: HashSet<RequestId>,
    awaited: Awaited,
}

/// The last tasks that were begun by an answer somebody waited for. Only their hashes: names
/// are as long as a server likes.
#[derive(Debug, Default)]
struct Awaited {
    hasher: RandomState,
    tasks: VecDeque<u64>,
}

// === impl Awaited ===

impl Awaited {
    fn insert(&mut self, task: &str) {
        if self.has(task) {
            return;
        }
        if self.tasks.len() == MAX_AWAITED {
            self.tasks.pop_front();
        }
        self.tasks.push_back(self.hasher.hash_one(task));
    }

    fn has(&self, task: &str) -> bool {
        self.tasks.contains(&self.hasher.hash_one(task))
    }
}

// === impl Parting ===

impl Parting {
    pub(super) fn introduce(&mut self, introduction: RequestMetaObject) {
        self.introduction = Some(introduction);
    }

    /// A request that tells the server to cancel this task. `None`: there is too much that it did not answer.
    pub(super) fn cancel(&mut self, task: String) -> Option<(RequestId, Tx)> {
        if self.pending.len() >= MAX_PENDING {
            return None;
        }
        self.made += 1;
        // `rmcp` counts; so no id of its is ever one of these.
        let id = RequestId::String(format!("cancel-task-{}", self.made).into());
        self.pending.insert(id.clone());
        let request = CancelTaskRequest::new(CancelTaskParams::new(task));
        let mut request = ClientRequest::CancelTaskRequest(request);
        if let Some(introduction) = &self.introduction {
            request.get_meta_mut().extend(introduction.clone());
        }
        Some((id.clone(), JsonRpcMessage::request(request, id)))
    }

    /// Whether that was a request of these, which is answered now.
    pub(super) fn answered(&mut self, id: &RequestId) -> bool {
        self.pending.remove(id)
    }
}

// === impl Exchange ===

impl Exchange {
    /// An answer that nobody waits for. What it began is called off, unless the same answer
    /// came before, to somebody who follows the task by now.
    pub(super) fn late(&mut self, answer: &Rx) {
        self.traffic.late_answers += 1;
        if let Some(created) = task_of(answer)
            && !self.parting.awaited.has(&created.task.task_id)
        {
            self.cancel_task(&created.task.task_id);
        }
    }

    /// An answer that somebody waits for.
    pub(super) fn in_time(&mut self, answer: &Rx) {
        if let Some(created) = task_of(answer) {
            self.parting.awaited.insert(&created.task.task_id);
        }
    }

    pub(crate) fn introduce(&mut self, us: RequestMetaObject) {
        self.parting.introduce(us);
    }

    /// Whether a message is one of these: then it is sent as a notice is, and nobody here
    /// looks at what is answered.
    #[cfg(feature = "http")]
    pub(super) fn is_notice(&mut self, message: &Tx, id: &RequestId) -> bool {
        is_parting(message) && self.parting.answered(id) && self.pending.remove(id).is_some()
    }

    /// Tells the server that nobody waits for a task any more. `false`: it cannot be told.
    pub(crate) fn cancel_task(&mut self, task: &str) -> bool {
        if self.closed {
            return false;
        }
        let Some((id, message)) = self.parting.cancel(task.to_owned()) else {
            return false;
        };
        self.pending.insert(id.clone(), Pending::new(None, None));
        self.outbox.push_back(Outgoing {
            message,
            id: Some(id),
            trace: None,
        });
        true
    }
}

/// Whether a message must leave although nothing is accepted any more.
pub(super) fn is_parting(message: &Tx) -> bool {
    let JsonRpcMessage::Request(request) = message else {
        return false;
    };
    matches!(request.request, ClientRequest::CancelTaskRequest(_))
}

/// The task that an answer says was begun.
pub(super) fn task_of(answer: &Rx) -> Option<&CreateTaskResult> {
    match answer {
        JsonRpcMessage::Response(response) => match &response.result {
            ServerResult::CreateTaskResult(created) => Some(created),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an answer asks for something, so that it is not the last.
pub(super) fn is_question(answer: &Rx) -> bool {
    match answer {
        JsonRpcMessage::Response(response) => {
            matches!(response.result, ServerResult::InputRequiredResult(_))
        }
        _ => false,
    }
}
