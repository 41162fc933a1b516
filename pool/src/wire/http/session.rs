//! What a handshake agreed on.

use http::HeaderValue;
use rmcp::model::{JsonRpcMessage, ProtocolVersion, ServerResult};

use super::super::exchange::Rx;

/// Set once, by the answer to the handshake; nothing that comes later changes it.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// What the server calls it, if it has sessions.
    pub(super) id: Option<HeaderValue>,
    pub(super) version: ProtocolVersion,
}

// === impl Session ===

impl Session {
    /// What an answer agrees on, if it is the first, that is to the handshake; `id` came
    /// with it.
    pub(super) fn agreed(message: &Rx, id: Option<&HeaderValue>) -> Option<Self> {
        let JsonRpcMessage::Response(response) = message else {
            return None;
        };
        match &response.result {
            ServerResult::InitializeResult(result) => Some(Self {
                id: id.cloned(),
                version: result.protocol_version.clone(),
            }),
            ServerResult::DiscoverResult(_) => Some(Self {
                id: None,
                version: ProtocolVersion::NO_INITIALIZE,
            }),
            // Something else was answered to a handshake, which fails by that; what was
            // begun with it is to be ended all the same.
            _ => id.map(|id| Self {
                id: Some(id.clone()),
                version: ProtocolVersion::LATEST_WITH_INITIALIZE,
            }),
        }
    }

    /// Whether streams can be resumed, and cancelling takes a message: both were dropped
    /// together with the handshake.
    pub(super) fn is_stateful(&self) -> bool {
        self.version.has_initialize()
    }
}
