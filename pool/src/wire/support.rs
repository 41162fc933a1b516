//! Tools that run only as tasks, as their list says. `rmcp` does not read that.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use rmcp::model::{JsonRpcMessage, ServerResult};
use serde::Deserialize;

use super::exchange::Rx;

/// How many are remembered: a server may give its tools new names with each list.
const MOST: usize = 10_000;

/// The tools of a server that run only as tasks.
#[derive(Debug, Default)]
pub(super) struct TaskOnly(Mutex<HashSet<String>>);

#[derive(Deserialize)]
struct Message {
    result: Page,
}

#[derive(Deserialize)]
struct Page {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    execution: Option<Execution>,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(rename = "taskSupport")]
    task_support: Option<String>,
}

// === impl TaskOnly ===

impl TaskOnly {
    /// Notes what a page of a list of tools says; `line` is what `message` was read from.
    pub(super) fn note(&self, message: &Rx, line: &[u8]) {
        let JsonRpcMessage::Response(response) = message else {
            return;
        };
        if !matches!(response.result, ServerResult::ListToolsResult(_)) {
            return;
        }
        // What cannot be read says nothing.
        let Ok(Message { result }) = serde_json::from_slice(line) else {
            return;
        };
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Tool { name, execution } in result.tools {
            let support = execution.and_then(|execution| execution.task_support);
            if support.as_deref() == Some("required") {
                if names.len() >= MOST {
                    names.clear();
                }
                names.insert(name);
            } else {
                names.remove(&name);
            }
        }
    }

    pub(super) fn has(&self, tool: &str) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.contains(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_with_ever_new_names_are_not_all_remembered() {
        let task_only = TaskOnly::default();
        for nth in 0..=MOST {
            let tool = json!({"name": nth.to_string(), "inputSchema": {"type": "object"},
                "execution": {"taskSupport": "required"}});
            let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}});
            let line = list.to_string();
            let message: Rx = serde_json::from_str(&line).unwrap();
            task_only.note(&message, line.as_bytes());
        }

        assert!(task_only.0.lock().unwrap().len() <= MOST);
        assert!(task_only.has(&MOST.to_string()), "the last is");
    }
}
