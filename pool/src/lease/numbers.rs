//! How long requests take, as numbers.

use std::{sync::Arc, time::Duration};

use metrics::{Label, histogram};

use super::{Lease, span::transport};
use crate::ToolCall;

/// Codes that the protocols reserve. A server may make up any others, and each would be a
/// time series of its own.
const RESERVED: std::ops::RangeInclusive<i32> = -32768..=-32000;

/// What the duration of a request is told with.
pub(super) struct Labels(Vec<Label>);

// === impl Labels ===

impl Labels {
    /// Names that only a caller made up are left out: there is no end of those.
    pub(super) fn tool_call(lease: &Lease, call: &ToolCall) -> Self {
        let mut labels = Self::of(lease, "tools/call");
        labels.add("gen_ai.operation.name", "execute_tool");
        let catalog = lease.seat.station().catalog(lease.seat.era());
        if catalog.is_some_and(|catalog| catalog.tool(call.tool()).is_some()) {
            labels
                .0
                .push(Label::new("gen_ai.tool.name", Arc::clone(call.tool())));
        }
        labels
    }

    pub(super) fn other(lease: &Lease, method: &'static str, prompt: Option<&str>) -> Self {
        let mut labels = Self::of(lease, method);
        let catalog = lease.seat.station().catalog(lease.seat.era());
        let known = prompt.zip(catalog).filter(|(prompt, catalog)| {
            let prompts = &catalog.prompts.items;
            prompts.iter().any(|known| known.name == *prompt)
        });
        if let Some((prompt, _)) = known {
            labels
                .0
                .push(Label::new("gen_ai.prompt.name", prompt.to_owned()));
        }
        labels
    }

    fn of(lease: &Lease, method: &'static str) -> Self {
        let mut labels = Self(vec![Label::new("server", Arc::clone(lease.server()))]);
        labels.add("mcp.method.name", method);
        if let Some(transport) = transport(lease.config().family()) {
            labels.add("network.transport", transport);
        }
        labels
    }

    /// The request was answered, or given up, `took` after it was sent.
    pub(super) fn ended(&self, took: Duration, error: Option<&'static str>, code: Option<i32>) {
        let mut labels = self.0.clone();
        let error = match code {
            Some(code) if RESERVED.contains(&code) => Some(code.to_string().into()),
            Some(_) => Some("_OTHER".into()),
            None => error.map(metrics::SharedString::from),
        };
        labels.extend(error.map(|error| Label::new("error.type", error)));
        histogram!("mcp.client.operation.duration", labels).record(took);
    }

    fn add(&mut self, name: &'static str, value: &'static str) {
        self.0.push(Label::from_static_parts(name, value));
    }
}
