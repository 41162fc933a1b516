//! The stack for MCP tool calls.

use std::{mem::size_of, sync::Arc};

use rmcp::model::{CallToolResult, ContentBlock};
use steadfast_budget::Global;
use steadfast_circuit_breaker::{self as circuit_breaker, Keyed};
use steadfast_fallback::{Chain, InvalidSettings, Memory, Settings};
use steadfast_pool::ToolCall;

use crate::stack::{Stack, StackLayer, StackService};

/// The stack for MCP tool calls: a circuit per server, and the last good answer of
/// read-only tools as its fallback.
pub type ToolStack<A = Global> =
    Stack<Chain<Memory<CallToolResult>>, A, Keyed<Arc<str>, fn(&ToolCall) -> Arc<str>>>;

/// What [`Stack::tools`] builds.
pub type ToolStackLayer<A = Global> =
    StackLayer<Chain<Memory<CallToolResult>>, A, Keyed<Arc<str>, fn(&ToolCall) -> Arc<str>>>;

/// The service that a [`ToolStackLayer`] makes around `S`.
pub type ToolStackService<S, A = Global> =
    StackService<S, Chain<Memory<CallToolResult>>, A, Keyed<Arc<str>, fn(&ToolCall) -> Arc<str>>>;

/// The server a call is for, to keep servers apart in circuits and budgets. Calls that
/// name none share one key.
#[must_use]
pub fn by_server(call: &ToolCall) -> Arc<str> {
    call.server().map_or_else(Arc::default, Arc::clone)
}

// === impl Stack ===

impl ToolStack {
    /// The defaults of every layer for calls on a [`Lease`](steadfast_pool::Lease): a
    /// circuit per server, no admission budget, and as fallback the last good answer of
    /// read-only tools, then a result that tells the model the tool is unavailable.
    pub fn tools() -> Self {
        Stack::over(Chain::standard(Memory::standard(weigh))).with_breaker_per(
            "servers",
            circuit_breaker::Settings::new(),
            by_server as fn(&ToolCall) -> Arc<str>,
        )
    }
}

impl<A, Sel> Stack<Chain<Memory<CallToolResult>>, A, Sel> {
    /// Sets how old an answer may be that is given in place of a failure, and whether a
    /// failure without one stays a failure (`explicit`).
    ///
    /// # Errors
    ///
    /// If a setting cannot be; the error names it and what is allowed.
    pub fn with_last_good(self, settings: Settings) -> Result<Self, InvalidSettings> {
        let chain = Chain::new(settings, Memory::standard(weigh))?;
        Ok(self.with_fallback(chain))
    }
}

/// About how many bytes a result takes in memory.
fn weigh(result: &CallToolResult) -> usize {
    let blocks: usize = result.content.iter().map(weigh_block).sum();
    let structured = result.structured_content.as_ref().map_or(0, weigh_json);
    size_of::<CallToolResult>() + blocks + structured
}

fn weigh_block(block: &ContentBlock) -> usize {
    let held = match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        // Rare, and small next to what they stand for; counted by their printed form.
        other => serde_json::to_string(other).map_or(0, |text| text.len()),
    };
    size_of::<ContentBlock>() + held
}

fn weigh_json(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    let held = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weigh_json).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| name.len() + weigh_json(value))
            .sum(),
    };
    size_of::<Value>() + held
}
