//! TLS, and whom it trusts.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, crypto::aws_lc_rs, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use steadfast_classify::Failure;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::failure::{insecure, unreachable};
use crate::wire::websocket::Tcp;

/// What certificates are checked by.
#[derive(Clone)]
pub(super) struct Roots(Arc<OnceLock<Arc<ClientConfig>>>);

// === impl Roots ===

impl Roots {
    /// The system's, read when they are needed first.
    pub(super) fn system() -> Self {
        Self(Arc::default())
    }

    pub(super) fn given(config: Arc<ClientConfig>) -> Self {
        Self(Arc::new(config.into()))
    }

    /// Speaks TLS over `tcp` with the server of this name.
    pub(super) async fn wrap(&self, host: &str, tcp: Tcp) -> Result<TlsStream<Tcp>, Failure> {
        let name = ServerName::try_from(host.to_owned()).map_err(insecure)?;
        let connector = TlsConnector::from(self.config()?);
        connector.connect(name, tcp).await.map_err(unreachable)
    }

    fn config(&self) -> Result<Arc<ClientConfig>, Failure> {
        if let Some(config) = self.0.get() {
            return Ok(Arc::clone(config));
        }
        // Not the process's default: that is not ours to choose, and there may be none.
        let config = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_platform_verifier())
            .map_err(insecure)?
            .with_no_client_auth();
        Ok(Arc::clone(self.0.get_or_init(|| Arc::new(config))))
    }
}
