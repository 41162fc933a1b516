//! Our side of a connection, as `rmcp` sees it.

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{ClientConfig, Implementation, ProtocolVersion, RequestMetaObject},
};

use crate::Host;

/// Answers what the server asks, as its host says.
#[derive(Debug)]
pub(crate) struct Client {
    config: ClientConfig,
}

// === impl Client ===

impl Client {
    /// A client that speaks this version, and announces what `host` can answer.
    pub(crate) fn new(host: &Host, us: Implementation, version: ProtocolVersion) -> Self {
        let config = ClientConfig::new(host.capabilities(), us);
        Self {
            config: config.with_protocol_version(version),
        }
    }
}

// === what each request has to say ===

impl Client {
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
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
