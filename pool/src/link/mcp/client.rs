//! Our side of a connection, as `rmcp` sees it.

#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::sync::Arc;

use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ListRootsResult};
use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ErrorCode,
        ErrorData, Implementation, ProtocolVersion, RequestMetaObject,
    },
    service::RequestContext,
};

use crate::{
    Host,
    ask::{Question, Reply},
    wire::{Trace, Wire},
};

/// The `_meta` key of the task that a question is about.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Answers what the server asks, as its host says.
#[derive(Debug)]
pub(crate) struct Client {
    config: ClientConfig,
    host: Host,
    wire: Arc<Wire>,
}

// === impl Client ===

impl Client {
    /// A client that speaks this version over this wire, and announces what `host` can
    /// answer.
    pub(crate) fn new(
        host: &Host,
        us: Implementation,
        version: ProtocolVersion,
        wire: &Arc<Wire>,
    ) -> Self {
        let config = ClientConfig::new(host.capabilities(), us);
        Self {
            config: config.with_protocol_version(version),
            host: host.clone(),
            wire: Arc::clone(wire),
        }
    }

    /// What each request has to say of us: nothing, where there was a handshake.
    pub(super) fn introduction(&self, peer: &Peer<RoleClient>) -> Option<RequestMetaObject> {
        let version = peer.peer_info()?.protocol_version.clone();
        let us = (
            self.config.client_info.clone(),
            self.config.capabilities.clone(),
        );
        (!version.has_initialize())
            .then(|| RequestMetaObject::with_client_context(version, us.0, us.1))
    }

    /// Puts a question to whomever it is proven to be for.
    async fn ask(
        &self,
        question: Question,
        context: &RequestContext<RoleClient>,
    ) -> Result<Reply, ErrorData> {
        let within = context.extensions.get::<Arc<Trace>>().map(|trace| &**trace);
        let related = context.meta.get(RELATED_TASK);
        let task = related.and_then(|related| related.get("taskId")?.as_str());
        // The server may take it back, too.
        let ended = async {
            tokio::select! {
                _ = self.wire.ended() => {}
                () = context.ct.cancelled() => {}
            }
        };
        self.host.ask(question, within, task, ended).await
    }
}

impl ClientHandler for Client {
    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        match self.ask(Question::Elicit(question), &context).await? {
            Reply::Elicited(result) => Ok(result),
            Reply::Sampled(_) => Err(ErrorData::internal_error("another answer", None)),
        }
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let question = Question::Sample(Box::new(request));
        match self.ask(question, &context).await? {
            Reply::Sampled(result) => Ok(*result),
            Reply::Elicited(_) => Err(ErrorData::internal_error("another answer", None)),
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.host.roots();
        roots.ok_or_else(|| no_method("the client has no roots"))
    }

    /// A request of a method nobody knows, or of one that is known and cannot be read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "elicitation/create" | "sampling/createMessage" | "roots/list" | "ping" => {
                ErrorData::invalid_params("the parameters cannot be read", None)
            }
            _ => no_method("the client has no such method"),
        })
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn no_method(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}
