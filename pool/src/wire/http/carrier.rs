//! What the tasks that carry one wire share.

use std::sync::{Arc, OnceLock};

use http::HeaderValue;
use rmcp::model::{JsonRpcMessage, RequestId, ServerResult};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::{
    super::{Hush, Wire, exchange::Rx},
    params::Params,
    session::Session,
    target::Target,
};

/// One wire, the server it goes to, and what is known of that.
pub(super) struct Carrier {
    pub(super) wire: Arc<Wire>,
    pub(super) target: Target,
    pub(super) session: OnceLock<Session>,
    pub(super) params: Params,
    /// Told once the server has taken the end of the handshake.
    pub(super) ready: Notify,
    inbox: mpsc::Sender<Rx>,
}

// === impl Carrier ===

impl Carrier {
    pub(super) fn new(wire: &Arc<Wire>, inbox: mpsc::Sender<Rx>, target: Target) -> Self {
        Self {
            wire: Arc::clone(wire),
            target,
            session: OnceLock::new(),
            params: Params::default(),
            ready: Notify::new(),
            inbox,
        }
    }

    /// Hands one message of the server on, or some in a batch. `within` is the request in
    /// whose response they came, `session` what that response calls the session.
    pub(super) async fn deliver(
        &self,
        bytes: &[u8],
        within: Option<&RequestId>,
        session: Option<&HeaderValue>,
    ) {
        if bytes.trim_ascii_start().first() != Some(&b'[') {
            return self.deliver_one(bytes, within, session).await;
        }
        // 2025-03-26 knows batches.
        let batch: Vec<Value> = serde_json::from_slice(bytes).unwrap_or_default();
        for message in batch {
            let message = message.to_string();
            self.deliver_one(message.as_bytes(), within, session).await;
        }
    }

    async fn deliver_one(
        &self,
        bytes: &[u8],
        within: Option<&RequestId>,
        session: Option<&HeaderValue>,
    ) {
        // Room first: an answer that was taken is handed on, even if whoever reads this
        // stream is given up meanwhile. An error means that `rmcp` is gone, and everybody
        // who waited with it.
        let Ok(room) = self.inbox.reserve().await else {
            return;
        };
        if let Some(message) = self.wire.take(bytes, within) {
            self.learn(&message, session);
            room.send(message);
        }
    }

    fn learn(&self, message: &Rx, id: Option<&HeaderValue>) {
        if let Some(session) = Session::agreed(message, id) {
            if !session.is_stateful() {
                self.wire.exchange().cancel_by_closing_only();
            }
            // Only the first handshake is one.
            let _ = self.session.set(session);
        }
        if let JsonRpcMessage::Response(response) = message
            && let ServerResult::ListToolsResult(list) = &response.result
        {
            self.params.learn(&list.tools);
        }
    }

    /// What a server calls the session, where it has any.
    pub(super) fn session_id(&self) -> Option<&HeaderValue> {
        self.session.get()?.id.as_ref()
    }

    /// What the server may quote of what it is sent, and we may not.
    pub(super) fn hush(&self) -> Hush {
        let mut hush = Hush::of(&self.target.url, &self.target.headers);
        if let Some(id) = self.session_id() {
            hush.add_header(id);
        }
        let credentials = self.target.credentials.as_ref();
        if let Some(secret) = credentials.and_then(|credentials| credentials.secret()) {
            hush.add(secret.expose_secret());
        }
        hush
    }

    /// Whether streams can be resumed, and there may be a stream of news.
    pub(super) fn is_stateful(&self) -> bool {
        self.session.get().is_none_or(Session::is_stateful)
    }
}
