//! An agent: a session's lease under the whole stack.

use std::sync::Arc;

use serde_json::{Map, Value};
use steadfast::{
    Failure, Lease, Sourced, Stack, ToolCall, circuit_breaker,
    fallback::Settings as LastGood,
    retry::{self, Backoff, Jitter},
    rmcp::model::{CallToolResult, ContentBlock},
    stack::{ToolStack, ToolStackLayer, ToolStackService},
    timeout,
};
use tokio::task::JoinHandle;
use tower::{Layer as _, ServiceExt as _};

use super::{ms, secs};

pub(crate) type Outcome = Result<Sourced<CallToolResult>, Failure>;

/// A lease under the whole stack; clones are calls of the same session.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) lease: Lease,
    pub(crate) layer: ToolStackLayer,
    service: ToolStackService<Lease>,
}

// === impl Agent ===

impl Agent {
    pub(crate) fn new(lease: Lease, stack: ToolStack) -> Self {
        let layer = stack.build().expect("a good stack");
        Self {
            service: layer.layer(lease.clone()),
            lease,
            layer,
        }
    }

    /// Calls `tool` with these arguments, which tell a probe what to do wrong.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.send(self.lease.tool(tool).with_arguments(object(arguments)))
            .await
    }

    pub(crate) async fn send(&self, call: ToolCall) -> Outcome {
        self.service.clone().oneshot(call).await
    }

    /// The same on a task of its own.
    pub(crate) fn begin(&self, tool: &str, arguments: Value) -> JoinHandle<Outcome> {
        let (agent, tool) = (self.clone(), tool.to_owned());
        tokio::spawn(async move { agent.call(&tool, arguments).await })
    }

    pub(crate) fn circuit(&self) -> Option<circuit_breaker::State> {
        let breakers = self.layer.breakers().expect("it has one");
        let name: &Arc<str> = self.lease.server();
        breakers.snapshot(name).map(|circuit| circuit.state)
    }
}

/// Quick retries, and failures that stay failures.
pub(crate) fn quick() -> ToolStack {
    let backoff = Backoff::new(ms(20), ms(100), Jitter::Additive(0.2)).expect("in order");
    Stack::tools()
        .with_last_good(LastGood::new().with_explicit(true))
        .expect("in order")
        .with_timeout(timeout::Settings::new().with_connect(secs(5)))
        .with_retry(retry::Settings::new().with_backoff(backoff))
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).expect("an object")
}

/// The first text of a result.
pub(crate) fn text(result: &CallToolResult) -> &str {
    match result.content.first() {
        Some(ContentBlock::Text(text)) => &text.text,
        other => panic!("no text: {other:?}"),
    }
}
