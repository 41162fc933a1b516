//! Our side of a connection, as `rmcp` sees it.

use rmcp::{
    ClientHandler,
    model::{ClientConfig, Implementation, ProtocolVersion},
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

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
