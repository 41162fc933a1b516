//! The events log: what a probe received and what became of its process, in order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::log::Log;
use super::message::{Incoming, Request};

/// The events that a probe, or several, wrote to one file.
pub type Events = Log<Event>;

/// One line of the events log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The process it happened to; of [`EventKind::Helper`] the started one.
    pub pid: u32,
    /// Microseconds on the machine's monotonic clock, comparable between processes; 0 where the
    /// platform has none.
    pub at_us: u64,
    /// The method of a request or notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The id of a request or reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The id of the request that a cancel notice is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Value>,
    /// The tool that a request calls, the prompt it asks for, or the task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `tag` argument of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The `cursor` of a list request, also the empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The `_meta` of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// What happened to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The server started.
    Start,
    /// It started a process of its own.
    Helper,
    /// A request came in.
    Request,
    /// A notification came in.
    Notice,
    /// A reply to a request of the server came in.
    Reply,
    /// A line came in that is no JSON-RPC message.
    Unreadable,
    /// The input ended.
    Eof,
    /// SIGTERM came.
    Term,
    /// A WebSocket's close frame came.
    Close,
    /// The client went away before the answer to a request over HTTP.
    Gone,
}

// === impl Event ===

impl Event {
    pub(crate) fn of_process(kind: EventKind, pid: u32) -> Self {
        Self {
            kind,
            pid,
            at_us: monotonic_us(),
            method: None,
            id: None,
            request_id: None,
            name: None,
            tag: None,
            cursor: None,
            meta: None,
        }
    }

    pub(crate) fn of_message(message: &Incoming) -> Self {
        let blank = |kind| Self::of_process(kind, std::process::id());
        match message {
            Incoming::Request(request) => blank(EventKind::Request).with_request(request),
            Incoming::Notice { method, params } => Self {
                method: Some(method.clone()),
                request_id: params.get("requestId").cloned(),
                ..blank(EventKind::Notice)
            },
            Incoming::Reply { id, .. } => Self {
                id: Some(id.clone()),
                ..blank(EventKind::Reply)
            },
            Incoming::Unreadable => blank(EventKind::Unreadable),
        }
    }

    fn with_request(self, request: &Request) -> Self {
        let text = |pointer| {
            let found = request.params.pointer(pointer);
            found.and_then(Value::as_str).map(str::to_owned)
        };
        Self {
            method: Some(request.method.clone()),
            id: Some(request.id.clone()),
            name: text("/name").or_else(|| text("/taskId")),
            tag: text("/arguments/tag"),
            cursor: text("/cursor"),
            meta: request.params.get("_meta").cloned(),
            ..self
        }
    }
}

// The kernel's clock and not tokio's, which starts anew in each process.
#[cfg(unix)]
pub(crate) fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
    u64::try_from(micros).unwrap_or(0)
}

#[cfg(not(unix))]
pub(crate) fn monotonic_us() -> u64 {
    0
}
