//! Tasks: calls that are answered before they are done.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::events::monotonic_us;
use super::knobs::{TaskEnd, TaskKnobs};
use super::log::{Appender, Log};
use super::message::{INTERNAL_ERROR, INVALID_PARAMS, Request, RpcError};
use super::server::Server;

/// The extension that client and server announce.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What happened to the tasks of a server, in its `state` file's neighbour if it has one.
#[derive(Debug)]
pub(crate) struct Tasks {
    file: Option<(Appender, Log<Line>)>,
    memory: Mutex<Vec<Line>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    task: String,
    what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Begun {
        at_us: u64,
        knobs: TaskKnobs,
        result: Value,
    },
    Told(Map<String, Value>),
    Cancelled,
}

/// One task, as its lines tell it.
struct Task {
    id: String,
    at_us: u64,
    knobs: TaskKnobs,
    result: Value,
    told: Map<String, Value>,
    cancelled: bool,
}

// === impl Tasks ===

impl Tasks {
    pub(crate) fn open(state: Option<&Path>) -> io::Result<Self> {
        let file = match state.map(|path| path.with_extension("tasks")) {
            Some(path) => Some((Appender::open(&path)?, Log::new(path))),
            None => None,
        };
        Ok(Self {
            file,
            memory: Mutex::default(),
        })
    }

    /// Begins a task that is to give `result`; returns the answer to its call.
    pub(crate) fn begin(&self, knobs: &TaskKnobs, result: Value) -> io::Result<Value> {
        let id = format!("task-{}-{}", std::process::id(), fastrand::u64(..));
        let begun = What::Begun {
            at_us: monotonic_us(),
            knobs: knobs.clone(),
            result,
        };
        self.note(&id, begun)?;
        let mut task = described(&id, knobs, "working");
        task["resultType"] = json!("task");
        Ok(task)
    }

    fn note(&self, task: &str, what: What) -> io::Result<()> {
        let line = Line {
            task: task.to_owned(),
            what,
        };
        match &self.file {
            Some((appender, _)) => appender.append_synced(&line),
            None => {
                self.memory
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(line);
                Ok(())
            }
        }
    }

    fn find(&self, id: &str) -> io::Result<Option<Task>> {
        let lines = match &self.file {
            Some((_, log)) => log.entries()?,
            None => self
                .memory
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        };
        let mut task: Option<Task> = None;
        for line in lines.into_iter().filter(|line| line.task == id) {
            match (line.what, &mut task) {
                (
                    What::Begun {
                        at_us,
                        knobs,
                        result,
                    },
                    None,
                ) => {
                    task = Some(Task {
                        id: id.to_owned(),
                        at_us,
                        knobs,
                        result,
                        told: Map::new(),
                        cancelled: false,
                    });
                }
                (What::Told(more), Some(task)) => task.told.extend(more),
                (What::Cancelled, Some(task)) => task.cancelled = true,
                _ => {}
            }
        }
        Ok(task)
    }
}

/// Answers `tasks/get`, `tasks/update` and `tasks/cancel`; `None`: not at all.
pub(crate) fn answer(server: &Server, request: &Request) -> Option<Result<Value, RpcError>> {
    let id = request.params.get("taskId").and_then(Value::as_str);
    let found = server.tasks.find(id.unwrap_or_default());
    let task = match found {
        Ok(Some(task)) if !task.knobs.unknown => task,
        Ok(_) => return Some(Err(RpcError::new(INVALID_PARAMS, "unknown task"))),
        Err(error) => return Some(Err(broken(&error))),
    };
    match request.method.as_str() {
        "tasks/get" => {
            let polls = server.count(&format!("poll:{}", task.id));
            match polls {
                Ok(polls) if task.knobs.exit_at_poll == Some(polls + 1) => {
                    server.exit(1);
                    None
                }
                Ok(polls) if polls < task.knobs.lost_polls => None,
                Ok(_) => Some(Ok(task.state())),
                Err(error) => Some(Err(broken(&error))),
            }
        }
        "tasks/update" => {
            let told = request.params.get("inputResponses").cloned();
            let told = told.and_then(|told| serde_json::from_value(told).ok());
            Some(noted(server, &task, What::Told(told.unwrap_or_default())))
        }
        _ => Some(noted(server, &task, What::Cancelled)),
    }
}

/// Whether a client said that it follows tasks: in its handshake or in this request.
pub(crate) fn are_followed(capabilities: Option<&Value>) -> bool {
    let extensions = capabilities.and_then(|capabilities| capabilities.get("extensions"));
    extensions.is_some_and(|extensions| extensions.get(EXTENSION).is_some())
}

fn noted(server: &Server, task: &Task, what: What) -> Result<Value, RpcError> {
    let noted = server.tasks.note(&task.id, what);
    noted.map_err(|error| broken(&error))?;
    Ok(json!({ "resultType": "complete" }))
}

fn broken(error: &io::Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, format!("the probe's own files: {error}"))
}

fn described(id: &str, knobs: &TaskKnobs, status: &str) -> Value {
    let mut task = json!({
        "taskId": id,
        "status": status,
        "statusMessage": format!("it is {status}"),
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": knobs.ttl_ms,
    });
    if let Some(interval) = knobs.interval_ms {
        task["pollIntervalMs"] = json!(interval);
    }
    task
}

// === impl Task ===

impl Task {
    fn state(&self) -> Value {
        let worked_us = monotonic_us().saturating_sub(self.at_us);
        if self.cancelled {
            return described(&self.id, &self.knobs, "cancelled");
        }
        if worked_us < self.knobs.work_ms.saturating_mul(1_000) {
            return described(&self.id, &self.knobs, "working");
        }
        let asks = self.knobs.asks.iter().flatten();
        let open: Map<_, _> = asks
            .filter(|(key, _)| !self.told.contains_key(*key))
            .map(|(key, ask)| (key.clone(), ask.clone()))
            .collect();
        if !open.is_empty() {
            let mut task = described(&self.id, &self.knobs, "input_required");
            task["inputRequests"] = Value::Object(open);
            return task;
        }
        self.end()
    }

    fn end(&self) -> Value {
        match self.knobs.ends {
            TaskEnd::Completed => {
                let mut task = described(&self.id, &self.knobs, "completed");
                task["result"] = self.result.clone();
                task["result"]["structuredContent"]["told"] = json!(self.told);
                task
            }
            TaskEnd::Failed => {
                let mut task = described(&self.id, &self.knobs, "failed");
                task["error"] = json!({ "code": -32000, "message": "the disk is full" });
                task
            }
            TaskEnd::Cancelled => described(&self.id, &self.knobs, "cancelled"),
        }
    }
}
