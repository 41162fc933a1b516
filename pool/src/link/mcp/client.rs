//! Our side of a connection, as `rmcp` sees it.

use rmcp::{
    ClientHandler,
    model::{ClientConfig, Implementation},
};

use crate::Host;

/// Answers what the server asks, as its host says.
#[derive(Debug)]
pub(crate) struct Client {
    config: ClientConfig,
}

// === impl Client ===

impl Client {
    /// A client that announces what `host` can answer.
    pub(crate) fn new(host: &Host, us: Implementation) -> Self {
        Self {
            config: ClientConfig::new(host.capabilities(), us),
        }
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}
