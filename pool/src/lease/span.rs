//! What traces, and with feature `metrics` numbers, say of each request to a server, under
//! the names that OpenTelemetry has for MCP; what is only ours is named `steadfast.*`.
//!
//! Never arguments, results, an address or a server's own words: all of them may be secret.

use std::future::Future;

use rmcp::model::CallToolResult;
use steadfast_classify::{Call as _, Class, Failure, Flight, Phase, Stage, mcp::ServerError};
use tracing::{
    Instrument as _, Span,
    field::{Empty, display},
    info_span,
};

use super::Lease;
use crate::{Family, ToolCall};

/// One request, from its beginning to its answer, or to its drop.
pub(super) struct Request<'a> {
    span: Span,
    flight: &'a Flight,
    #[cfg(feature = "metrics")]
    labels: super::numbers::Labels,
    ended: bool,
}

// === impl Request ===

impl<'a> Request<'a> {
    /// One attempt of a tool call.
    pub(super) fn tool_call(lease: &Lease, call: &ToolCall, flight: &'a Flight) -> Self {
        let (tool, family) = (&**call.tool(), lease.config().family());
        let attempt = call.context().map(|context| context.attempt());
        let span = info_span!(
            "tools/call",
            otel.name = format_args!("tools/call {tool}"),
            otel.kind = "client",
            otel.status_code = Empty,
            mcp.method.name = "tools/call",
            mcp.protocol.version = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            network.transport = transport(family),
            network.protocol.name = protocol(family),
            jsonrpc.request.id = Empty,
            rpc.response.status_code = Empty,
            error.type = Empty,
            steadfast.server = &**lease.server(),
            steadfast.attempt = attempt.filter(|attempt| *attempt > 0),
            steadfast.class = Empty,
            steadfast.phase = Empty,
        );
        Self {
            span,
            flight,
            #[cfg(feature = "metrics")]
            labels: super::numbers::Labels::tool_call(lease, call),
            ended: false,
        }
    }

    /// A request that is no tool call; `prompt` is the one that it is about.
    pub(super) fn other(
        lease: &Lease,
        method: &'static str,
        prompt: Option<&str>,
        flight: &'a Flight,
    ) -> Self {
        let family = lease.config().family();
        let span = info_span!(
            "request",
            otel.name = display(prompt.map_or_else(
                || method.to_owned(),
                |prompt| format!("{method} {prompt}"),
            )),
            otel.kind = "client",
            otel.status_code = Empty,
            mcp.method.name = method,
            mcp.protocol.version = Empty,
            gen_ai.prompt.name = prompt,
            network.transport = transport(family),
            network.protocol.name = protocol(family),
            jsonrpc.request.id = Empty,
            rpc.response.status_code = Empty,
            error.type = Empty,
            steadfast.server = &**lease.server(),
            steadfast.class = Empty,
            steadfast.phase = Empty,
        );
        Self {
            span,
            flight,
            #[cfg(feature = "metrics")]
            labels: super::numbers::Labels::other(lease, method, prompt),
            ended: false,
        }
    }

    /// Does `work` within the span, and notes how it ended. `fault` says whether an answer
    /// reports an error all the same.
    pub(super) async fn around<T>(
        mut self,
        fault: impl FnOnce(&T) -> Option<&'static str>,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let result = work.instrument(self.span.clone()).await;
        self.ended = true;
        match &result {
            Ok(answer) => {
                let fault = fault(answer);
                if let Some(fault) = fault {
                    self.fault(fault);
                }
                self.count(fault, None);
            }
            Err(failure) => self.failed(failure),
        }
        result
    }

    fn failed(&self, failure: &Failure) {
        let (class, code) = (failure.class(), code(failure));
        if !self.span.is_disabled() {
            self.span.record("steadfast.class", class.as_str());
            if let Some(phase) = failure.phase() {
                self.span.record("steadfast.phase", phase.as_str());
            }
            match code {
                Some(code) => {
                    self.span
                        .record("rpc.response.status_code", display(code))
                        .record("otel.status_code", "ERROR")
                        .record("error.type", display(code));
                }
                None => self.fault(class.as_str()),
            }
        }
        self.count(Some(class.as_str()), code);
    }

    /// Whoever wanted the answer has left: a limit of theirs passed, or they cancelled it.
    fn abandoned(&self) {
        let class = Class::Cancelled.as_str();
        if !self.span.is_disabled() {
            let phase = match self.flight.stage().0 {
                Stage::Sent | Stage::Answered => Phase::Read,
                _ => Phase::Connect,
            };
            self.span.record("steadfast.class", class);
            self.span.record("steadfast.phase", phase.as_str());
            self.fault(class);
        }
        self.count(Some(class), None);
    }

    fn fault(&self, kind: &'static str) {
        self.span
            .record("otel.status_code", "ERROR")
            .record("error.type", kind);
    }

    #[cfg(feature = "metrics")]
    fn count(&self, error: Option<&'static str>, code: Option<i32>) {
        if let Some(sent) = self.flight.sent_at() {
            self.labels.ended(sent.elapsed(), error, code);
        }
    }

    #[cfg(not(feature = "metrics"))]
    const fn count(&self, _error: Option<&'static str>, _code: Option<i32>) {}
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.abandoned();
        }
    }
}

/// A result that reports an error is a success of the transport, and an error of the tool.
pub(super) fn tool_error(result: &CallToolResult) -> Option<&'static str> {
    (result.is_error == Some(true)).then_some("tool_error")
}

/// The code of an error with which the server answered.
fn code(failure: &Failure) -> Option<i32> {
    failure.find_source::<ServerError>().map(ServerError::code)
}

/// `None` where nothing is transported.
pub(super) const fn transport(family: Family) -> Option<&'static str> {
    match family {
        Family::Stdio => Some("pipe"),
        Family::WebSocket | Family::Http => Some("tcp"),
        Family::InProcess => None,
    }
}

const fn protocol(family: Family) -> Option<&'static str> {
    match family {
        Family::WebSocket => Some("websocket"),
        Family::Http => Some("http"),
        Family::Stdio | Family::InProcess => None,
    }
}
