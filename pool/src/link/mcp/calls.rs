//! What is asked of a server, apart from its lists.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, PingRequest, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResult, RequestMetaObject, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use steadfast_classify::{Call as _, Class, Failure, Flight};

use super::McpLink;
use crate::{ToolCall, Unanswered, ask::offering, wire::Trace};

/// The `_meta` key of the idempotency key of a logical call.
const IDEMPOTENCY_META_KEY: &str = "io.github.steadfast/idempotency-key";

// === impl McpLink ===

impl McpLink {
    pub(super) async fn prompt(
        &self,
        params: GetPromptRequestParams,
        flight: Flight,
    ) -> Result<GetPromptResult, Failure> {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        match self.ask(request, flight).await? {
            ServerResult::GetPromptResult(result) => Ok(result),
            other => Err(unexpected(&other, "the answer to prompts/get is no prompt")),
        }
    }

    pub(super) async fn resource(
        &self,
        params: ReadResourceRequestParams,
        flight: Flight,
    ) -> Result<ReadResourceResult, Failure> {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.ask(request, flight).await? {
            ServerResult::ReadResourceResult(result) => Ok(result),
            other => Err(unexpected(
                &other,
                "the answer to resources/read is no resource",
            )),
        }
    }

    pub(super) async fn completion(
        &self,
        params: CompleteRequestParams,
        flight: Flight,
    ) -> Result<CompleteResult, Failure> {
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        match self.ask(request, flight).await? {
            ServerResult::CompleteResult(result) => Ok(result),
            other => Err(unexpected(
                &other,
                "the answer to completion/complete is none",
            )),
        }
    }

    pub(super) async fn sign_of_life(&self) -> Result<(), Failure> {
        let request = ClientRequest::PingRequest(PingRequest::default());
        self.ask(request, claimed()).await.map(drop)
    }

    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        flight: Flight,
    ) -> Result<ServerResult, Failure> {
        self.request(
            request,
            PeerRequestOptions::no_options(),
            Trace::new(flight),
        )
        .await
    }
}

/// The flight of a request that the pool makes itself: if it is withdrawn, it was not sent.
pub(super) fn claimed() -> Flight {
    let flight = Flight::new();
    let _ = flight.queued();
    flight
}

/// The request of a call. Where each request says what can be answered (`announced`), this
/// one adds what the session of the call answers.
pub(super) fn tool_request(
    call: &ToolCall,
    announced: Option<&ClientCapabilities>,
) -> (ClientRequest, PeerRequestOptions) {
    let mut params = CallToolRequestParams::new(call.tool().to_string());
    params.arguments = call.arguments().cloned();
    if let Some(round) = call.round() {
        let responses = &round.responses;
        params.input_responses = (!responses.is_empty()).then(|| responses.clone());
        params.request_state.clone_from(&round.state);
    }
    let key = call
        .context()
        .and_then(|context| context.idempotency_key())
        .filter(|_| call.sends_idempotency_key());
    let owner = call.ties().and_then(|ties| ties.owner.as_ref());
    let mut meta = RequestMetaObject::new();
    if let Some(key) = key {
        let entries = &mut meta.0.0;
        entries.insert(IDEMPOTENCY_META_KEY.into(), key.to_string().into());
    }
    if let (Some(announced), Some(owner)) = (announced, owner) {
        let offers = owner.handler().offers();
        meta.set_client_capabilities(offering(announced.clone(), offers));
    }
    let mut options = PeerRequestOptions::no_options();
    if !meta.0.0.is_empty() {
        options = options.with_meta(meta);
    }
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    (request, options)
}

/// What the answer to a tool call holds. A result without content is one all the same.
pub(super) fn tool_answer(result: ServerResult) -> Result<CallToolResponse, Failure> {
    match result {
        ServerResult::CallToolResult(result) => Ok(result.into()),
        ServerResult::InputRequiredResult(result) => Ok(result.into()),
        ServerResult::CreateTaskResult(result) => Ok(result.into()),
        ServerResult::EmptyResult(_) => Ok(CallToolResult::default().into()),
        ServerResult::TaskAckResult(ack) => {
            let mut result = CallToolResult::default();
            result.meta = ack.meta;
            Ok(result.into())
        }
        other => Err(unexpected(
            &other,
            "the answer to tools/call is no tool result",
        )),
    }
}

/// A result that is not what was asked for.
pub(super) fn unexpected(result: &ServerResult, otherwise: &'static str) -> Failure {
    let answered = |what: &'static str| Failure::new(Class::Answered).with_source(what);
    match result {
        ServerResult::CreateTaskResult(_) => {
            answered("the server started a task, which was not asked for")
        }
        // Only tool calls are made again with an answer.
        ServerResult::InputRequiredResult(_) => {
            Failure::new(Class::Answered).with_source(Unanswered::Nobody)
        }
        _ => Failure::new(Class::Unknown).with_source(otherwise),
    }
}
