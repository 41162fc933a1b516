//! Calls that run as tasks, and calls that ask before they run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A call that runs as a task, where the client announced that it follows them.
///
/// It is executed when it is begun, and done `work_ms` later, whatever process is asked then: with
/// a `state` file its tasks outlive the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskKnobs {
    /// How long it works.
    pub work_ms: u64,
    /// The time between two questions that the server suggests.
    pub interval_ms: Option<u64>,
    /// How long the server says that it keeps the task. It keeps it longer all the same.
    pub ttl_ms: Option<u64>,
    /// How it ends.
    pub ends: TaskEnd,
    /// Once it has worked it asks these, by their keys, and ends when they are answered; the
    /// answers are in its result.
    pub asks: Option<Map<String, Value>>,
    /// The first so many questions about it are not answered.
    pub lost_polls: u64,
    /// The process exits with code 1 when it is asked this often, before it answers.
    pub exit_at_poll: Option<u64>,
    /// Every question about it is answered with `-32602`.
    pub unknown: bool,
}

/// How a task ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// With the call's result.
    #[default]
    Completed,
    /// With a JSON-RPC error.
    Failed,
    /// As if somebody had cancelled it.
    Cancelled,
}
