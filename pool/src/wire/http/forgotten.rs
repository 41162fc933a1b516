//! Whether a server has forgotten the session.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use rmcp::model::{ClientRequest, JsonRpcMessage, NumberOrString, PingRequest, RequestId};
use tokio::time::timeout;

use super::{
    super::{Hush, refused::Refusal},
    answer::read_error,
    carrier::Carrier,
    headers,
    send::{Outbound, Payload},
};

/// How long the server may take to say whether it knows the session.
const SAYS_WITHIN: Duration = Duration::from_secs(5);

/// The id of the question. Requests have numbers, so it is no other's.
const ID: &str = "is-the-session-known";

// === impl Carrier ===

impl Carrier {
    /// Whether a refusal of this request says that the server has forgotten the session.
    ///
    /// 404 is the protocol's word for that (MCP 2025-11-25, transports, "Session
    /// management"). Many servers say 400 instead, which may as well be about the request
    /// itself; and a 404 that answers the request by its id may be what its tool did not
    /// find, once it ran. So they are asked for a sign of life in the same session, which is
    /// refused only where the session is.
    pub(super) async fn is_forgotten(&self, id: &RequestId, refusal: &Refusal) -> bool {
        if self.session_id().is_none() {
            return false;
        }
        match refusal.status {
            StatusCode::NOT_FOUND if !refusal.answers(id) => true,
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => {
                self.wire.is_superseded() || self.refuses_pings().await
            }
            _ => false,
        }
    }

    /// Whether the server refuses even a sign of life in this session.
    pub(super) async fn refuses_pings(&self) -> bool {
        timeout(SAYS_WITHIN, self.ping()).await.unwrap_or(false)
    }

    async fn ping(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let id: RequestId = NumberOrString::String(ID.into());
        let message = JsonRpcMessage::request(ping, id.clone());
        let Ok(bytes) = serde_json::to_vec(&message) else {
            return false;
        };
        let sent = self.send(Outbound {
            method: Method::POST,
            headers: headers::of_message(&message, self.session.get(), &self.params),
            payload: Payload::Notice(Bytes::from(bytes), None),
        });
        let Ok(response) = sent.await else {
            return false;
        };
        let refusal = Refusal {
            status: response.status(),
            headers: response.headers().clone(),
            body: read_error(response).await,
            hush: Hush::default(),
        };
        let refused = matches!(
            refusal.status,
            StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST
        );
        // Whoever knows no pings says so in a session that lives.
        refused && !refusal.lacks_method(&id)
    }
}
