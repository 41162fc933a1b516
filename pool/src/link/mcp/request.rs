//! One request, from its first byte to its answer or the end of the connection.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ServiceError,
    model::{ClientRequest, GetExtensions as _, RequestId, ServerResult},
    service::{PeerRequestOptions, RequestHandle},
};
use steadfast_classify::{
    Class, Failure, Phase,
    mcp::{Delivery, service_failure},
};
use tokio::time;
use tracing::{Span, field::display, level_filters::LevelFilter};

use super::McpLink;
use crate::{
    Lost,
    wire::{Trace, Wire},
};

/// How long an answer that has been read may take to come through `rmcp` once the
/// connection has ended.
const DELIVERY: Duration = Duration::from_secs(1);

/// Gives up on a request when its caller leaves before the answer.
struct AbandonOnDrop<'a> {
    wire: &'a Wire,
    trace: Option<&'a Trace>,
}

// === impl McpLink ===

impl McpLink {
    /// Sends one request and waits for its answer, or for the end of the connection.
    pub(super) async fn request(
        &self,
        mut request: ClientRequest,
        options: PeerRequestOptions,
        trace: Trace,
    ) -> Result<ServerResult, Failure> {
        let trace = Arc::new(trace);
        request.extensions_mut().insert(Arc::clone(&trace));
        let mut guard = AbandonOnDrop::new(&self.wire, &trace);
        let sent = tokio::select! {
            biased;
            sent = self.peer.send_request_with_option(request, options) => sent,
            () = self.ended() => return Err(self.loss(&trace)),
        };
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => {
                self.ending().await;
                return Err(self.refine(service_failure(error, Delivery::NotHanded)));
            }
        };
        self.note(&handle.id);
        match self.answer(handle, &trace).await {
            Ok(Ok(result)) => {
                guard.disarm();
                Ok(result)
            }
            Ok(Err(error)) => {
                guard.disarm();
                let verdict = trace.verdict();
                Err(verdict.unwrap_or_else(|| service_failure(error, Delivery::Handed)))
            }
            Err(failure) => Err(failure),
        }
    }

    /// What came back; the outer error is the end of the connection.
    async fn answer(
        &self,
        handle: RequestHandle<rmcp::RoleClient>,
        trace: &Trace,
    ) -> Result<Result<ServerResult, ServiceError>, Failure> {
        let RequestHandle { mut rx, .. } = handle;
        let answer = tokio::select! {
            biased;
            answer = &mut rx => answer,
            // An answer that was read before the end is on its way through rmcp.
            () = self.ended() => {
                if !trace.is_answered() {
                    return Err(self.loss(trace));
                }
                match time::timeout(DELIVERY, &mut rx).await {
                    Ok(answer) => answer,
                    Err(_) => return self.last(trace).map(Ok),
                }
            }
        };
        match answer {
            Ok(Err(ServiceError::TransportClosed)) | Err(_) => {
                self.ending().await;
                self.last(trace).map(Ok)
            }
            Ok(answer) => Ok(answer),
        }
    }

    /// Puts what the protocol calls it on the span of the request, where there is one.
    fn note(&self, id: &RequestId) {
        // To look for the span is dear, and there is none where nobody listens.
        if LevelFilter::current() == LevelFilter::OFF {
            return;
        }
        let span = Span::current();
        span.record("jsonrpc.request.id", display(id));
        if let Some(server) = self.peer.peer_info() {
            span.record("mcp.protocol.version", display(&server.protocol_version));
        }
    }

    async fn ended(&self) {
        let mut lost = self.lost.clone();
        // An error means that the supervisor is gone, and the connection with it.
        let over = |lost: &Option<Lost>| lost.as_ref().is_some_and(|lost| !lost.superseded);
        let _ = lost.wait_for(over).await;
    }

    /// `rmcp` may hear of the end first: a moment later it is known how the server ended.
    async fn ending(&self) {
        let _ = time::timeout(DELIVERY, self.ended()).await;
    }

    /// What is left of an answer that was read and did not come through: a task lives on,
    /// and must not be forgotten.
    fn last(&self, trace: &Trace) -> Result<ServerResult, Failure> {
        match trace.task() {
            Some(task) => Ok(ServerResult::CreateTaskResult(task.clone())),
            None => Err(self.loss(trace)),
        }
    }

    /// What the end of the connection means for a call on it.
    fn loss(&self, trace: &Trace) -> Failure {
        let failure = if trace.never_left() {
            Failure::new(Class::NotSent).with_phase(Phase::Connect)
        } else {
            Failure::new(Class::Unknown)
        };
        self.refine(failure)
    }

    fn refine(&self, failure: Failure) -> Failure {
        match &*self.lost.borrow() {
            Some(lost) => failure.with_source(lost.clone()),
            None => failure.with_source(Lost::new("the connection was closed")),
        }
    }
}

// === impl AbandonOnDrop ===

impl<'a> AbandonOnDrop<'a> {
    const fn new(wire: &'a Wire, trace: &'a Trace) -> Self {
        Self {
            wire,
            trace: Some(trace),
        }
    }

    const fn disarm(&mut self) {
        self.trace = None;
    }
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(trace) = self.trace {
            self.wire.abandon(trace, "the caller gave up");
        }
    }
}
