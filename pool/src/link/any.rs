//! Every kind of server, each by its own connector.

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use steadfast_classify::{Class, Failure, Phase};
use tokio::time::Instant;

#[cfg(feature = "http")]
use super::HttpConnect;
#[cfg(feature = "websocket")]
use super::WebSocketConnect;
use super::{Connect, InProcessConnect, Link, StdioConnect};
use crate::{Endpoint, Family, Host, ServerConfig, process::Grace};

/// Reaches each server by what its configuration says it is.
///
/// This is what [`Pool::new`](crate::Pool::new) uses. Make it yourself to change one of
/// the connectors in it, and give it to
/// [`Pool::with_connector`](crate::Pool::with_connector).
#[derive(Clone, Debug)]
pub struct AnyConnect {
    stdio: StdioConnect,
    #[cfg(feature = "http")]
    http: HttpConnect,
    #[cfg(feature = "websocket")]
    websocket: WebSocketConnect,
    in_process: InProcessConnect,
}

// === impl AnyConnect ===

impl AnyConnect {
    /// All connectors that this build has, as they are by default; what runs on this
    /// machine is ended within `grace`.
    #[must_use]
    pub fn new(grace: Grace) -> Self {
        Self {
            stdio: StdioConnect::new(grace),
            #[cfg(feature = "http")]
            http: HttpConnect::new(),
            #[cfg(feature = "websocket")]
            websocket: WebSocketConnect::new(),
            in_process: InProcessConnect::new(grace),
        }
    }

    /// Starts programs by this one.
    #[must_use]
    pub fn with_stdio(mut self, stdio: StdioConnect) -> Self {
        self.stdio = stdio;
        self
    }

    /// Reaches HTTP servers by this one.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_http(mut self, http: HttpConnect) -> Self {
        self.http = http;
        self
    }

    /// Reaches servers by WebSockets by this one.
    #[cfg(feature = "websocket")]
    #[must_use]
    pub fn with_websocket(mut self, websocket: WebSocketConnect) -> Self {
        self.websocket = websocket;
        self
    }
}

impl Connect for AnyConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        match config.endpoint() {
            Endpoint::Stdio(_) => self.stdio.connect(config, deadline, host),
            #[cfg(feature = "http")]
            Endpoint::Http(_) => self.http.connect(config, deadline, host),
            #[cfg(not(feature = "http"))]
            Endpoint::Http(_) => refuse(config),
            #[cfg(feature = "websocket")]
            Endpoint::WebSocket(_) => self.websocket.connect(config, deadline, host),
            #[cfg(not(feature = "websocket"))]
            Endpoint::WebSocket(_) => refuse(config),
            Endpoint::InProcess(_) => self.in_process.connect(config, deadline, host),
        }
    }

    fn kill_all(&self) {
        self.stdio.kill_all();
    }
}

/// Refuses a kind of server that whoever is asked cannot reach.
pub(super) fn refuse(config: &ServerConfig) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
    future::err(unsupported(config.family())).boxed()
}

/// A kind of server that whoever is asked cannot reach.
pub(super) fn unsupported(family: Family) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_permanent()
        .with_source(format!(
            "servers reached by {family} are not supported here; turn on the feature `{family}` \
             of steadfast, or bring a transport with Pool::with_connector"
        ))
}
