//! Servers that are reached by a WebSocket.

mod dial;
mod failure;
mod tls;
mod upgrade;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt};
use rustls::ClientConfig;
use steadfast_classify::{Class, Failure, Phase};
use tokio::time::{self, Instant};

use super::{
    Connect, Link,
    any::refuse,
    handshake::{Terms, shake},
    server::{Farewell, Server},
};
use crate::{
    Endpoint, Host, Remote, ServerConfig,
    process::Grace,
    time::after,
    wire::websocket::{Bytes, Pulse, Socket, Tcp, carry},
};

pub use failure::WebSocketFailed;

use tls::Roots;
use upgrade::Upgrade;

/// Reaches servers by a WebSocket, with the subprotocol `mcp`: one message in each text
/// frame (a binary frame that holds JSON is taken too), messages of 16 MiB at most.
///
/// - **Connecting**, which is DNS, TCP, TLS and the upgrade together, has a limit of its
///   own; a call that needs longer for them was not sent.
/// - **Upgrades that are refused**: 401 and 403 are answers, with the challenge
///   ([`HttpRefused`](crate::HttpRefused)); 429 is an overload and honours `Retry-After`,
///   which 5xx do too; every other status will not change by trying again. Redirects are
///   not followed, so that no header goes elsewhere.
/// - **TLS** certificates are checked against the system's roots; see
///   [`with_tls`](Self::with_tls).
/// - A login in the address is sent as basic authentication.
/// - **Proxies** are not used.
/// - **Closing** takes up to 1 s: for what is queued, the close frame and the server's.
///
/// Whatever breaks the protocol (text that is not UTF-8, a message that is too long) ends
/// the connection, and with it the calls that run on it; the next call goes to a new one.
///
/// Nothing of a message or a header is logged here; but `tungstenite`, which makes the
/// frames, logs both at the level `trace` of the crate `log`, under its own name. Leave that
/// off where logs are kept.
#[derive(Clone, Debug)]
pub struct WebSocketConnect(Arc<Shared>);

#[derive(Clone)]
struct Shared {
    connect_timeout: Duration,
    roots: Roots,
}

// === impl WebSocketConnect ===

impl WebSocketConnect {
    /// Connects within 5 s, and trusts whom the system trusts.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            connect_timeout: Duration::from_secs(5),
            roots: Roots::system(),
        }))
    }

    /// Sets how long DNS, TCP, TLS and the upgrade may take in all. Default 5 s. The start
    /// limit of the server bounds it, too.
    #[must_use]
    pub fn with_connect_timeout(self, limit: Duration) -> Self {
        self.with(|shared| shared.connect_timeout = limit)
    }

    /// Speaks TLS by this configuration (of `rustls` 0.23): for other root certificates,
    /// or a certificate of ours. Default: the system's roots, and no certificate.
    #[must_use]
    pub fn with_tls(self, config: Arc<ClientConfig>) -> Self {
        self.with(|shared| shared.roots = Roots::given(config))
    }

    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }

    async fn start(self, remote: Remote, terms: Terms) -> Result<Arc<dyn Link>, Failure> {
        let begun = Instant::now();
        let by = after(begun, self.0.connect_timeout).min(terms.deadline);
        let (socket, pulse) = match time::timeout_at(by, self.open(&remote)).await {
            Ok(opened) => opened?,
            Err(_elapsed) => return Err(too_slow(begun.elapsed())),
        };
        let farewell = Farewell::default();
        let carried = carry(socket, pulse, farewell.clone());
        shake(carried, Server::Remote(farewell), &terms).await
    }

    /// From an address to a WebSocket.
    async fn open(&self, remote: &Remote) -> Result<(Socket, Pulse), Failure> {
        let upgrade = Upgrade::new(remote)?;
        let (host, port) = upgrade.place();
        let tcp = dial::dial(host, port).await?;
        let tcp = Tcp::new(tcp);
        let pulse = tcp.pulse();
        let stream: Box<dyn Bytes> = if upgrade.is_secure() {
            Box::new(self.0.roots.wrap(host, tcp).await?)
        } else {
            Box::new(tcp)
        };
        Ok((upgrade.perform(stream).await?, pulse))
    }
}

impl Default for WebSocketConnect {
    fn default() -> Self {
        Self::new()
    }
}

impl Connect for WebSocketConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let Endpoint::WebSocket(remote) = config.endpoint() else {
            return refuse(config);
        };
        let terms = Terms {
            host: host.clone(),
            version: config.protocol_version().cloned(),
            grace: Grace::default(),
            deadline,
        };
        self.clone().start(remote.clone(), terms).boxed()
    }
}

// === impl Shared ===

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketConnect")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

fn too_slow(elapsed: Duration) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_elapsed(elapsed)
        .with_source("the server could not be reached in time")
}
