//! The ledger: one line per execution of a tool.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::log::Log;

/// The executions that a probe, or several, wrote to one file.
pub type Ledger = Log<Execution>;

/// One execution of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The tool.
    pub tool: String,
    /// The call's `tag` argument.
    pub tag: Option<String>,
    /// The JSON-RPC id of the request.
    pub id: Value,
    /// The process that ran it.
    pub pid: u32,
    /// The how manieth execution of that process, from 1.
    pub seq: u64,
    /// The idempotency key, if the `dedup` knob names one and the call carried it.
    pub key: Option<String>,
}

// === impl Ledger ===

impl Ledger {
    /// How often anything was executed.
    ///
    /// # Errors
    /// As [`entries`](Log::entries).
    pub fn count(&self) -> io::Result<usize> {
        Ok(self.entries()?.len())
    }

    /// How often `tool` was executed.
    ///
    /// # Errors
    /// As [`entries`](Log::entries).
    pub fn count_tool(&self, tool: &str) -> io::Result<usize> {
        Ok(self.entries()?.iter().filter(|e| e.tool == tool).count())
    }

    /// How often a call with this `tag` was executed.
    ///
    /// # Errors
    /// As [`entries`](Log::entries).
    pub fn count_tag(&self, tag: &str) -> io::Result<usize> {
        let tagged = |e: &&Execution| e.tag.as_deref() == Some(tag);
        Ok(self.entries()?.iter().filter(tagged).count())
    }
}
