//! Servers that are reached by streamable HTTP.

mod client;
mod refusal;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::future::{self, BoxFuture, FutureExt};
use reqwest::ClientBuilder;
use rmcp::model::ProtocolVersion;
use steadfast_classify::{Class, Failure, Phase};
use tokio::time::Instant;

use super::{
    Connect, Link,
    any::unsupported,
    handshake::{Terms, shake},
    server::{Farewell, Server},
};
use crate::{
    Authorize, Endpoint, Host, Key, Remote, ServerConfig,
    process::Grace,
    wire::http::{Credentials, InvalidTarget, Target, carry, url},
};

use refusal::speaks_other;

/// Reaches servers by streamable HTTP.
///
/// It speaks all versions of the protocol from 2024-11-05 on. With a server whose
/// configuration names none it starts with the newest that has a handshake, and goes on
/// to 2026-07-28, which has none, if the server does not take that.
///
/// - **Connecting**, which is DNS, TCP and TLS together, has a limit of its own; nothing
///   else here has one: how long an answer may take is for the layers above.
/// - **Redirects**: 307 and 308 within the same scheme, host and port, three of them.
/// - **Proxies** of the environment (`HTTPS_PROXY` and the like) are used, but never for
///   this machine itself.
/// - **TLS** certificates are checked against the system's roots; add others by
///   [`with_client`](Self::with_client).
/// - **Sockets** that have been idle for 4 s are not used again: most servers close them
///   after 5 s, and a call that meets that end may have run.
/// - Each connection has a client, and so a pool of sockets, of its own, and closes all of
///   it at its end. It speaks HTTP/1.1.
///
/// ```no_run
/// use std::time::Duration;
///
/// use steadfast_pool::{AnyConnect, HttpConnect, Pool, PoolSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = PoolSettings::default();
/// let http = HttpConnect::new().with_connect_timeout(Duration::from_secs(2));
/// let connect = AnyConnect::new(settings.closing).with_http(http);
/// let pool = Pool::with_connector(settings, connect)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpConnect(Arc<Shared>);

#[derive(Clone)]
struct Shared {
    connect_timeout: Duration,
    customize: Option<Customize>,
    authorize: Option<Arc<dyn Authorize>>,
    /// The tokens of the servers that there are connections to.
    credentials: Arc<Mutex<HashMap<Key, Weak<Credentials>>>>,
}

/// A configuration by which nothing can be reached.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Target(#[from] InvalidTarget),
    #[error("the HTTP client cannot be made: {0}")]
    Client(#[from] reqwest::Error),
}

type Customize = Arc<dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync>;

// === impl HttpConnect ===

impl HttpConnect {
    /// Connects within 5 s, without tokens of its own.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            connect_timeout: Duration::from_secs(5),
            customize: None,
            authorize: None,
            credentials: Arc::default(),
        }))
    }

    /// Sets how long DNS, TCP and TLS may take in all. A call that needs longer for them
    /// was not sent. Default 5 s.
    #[must_use]
    pub fn with_connect_timeout(self, limit: Duration) -> Self {
        self.with(|shared| shared.connect_timeout = limit)
    }

    /// Changes the client that each connection is made with: other root certificates, a
    /// certificate of ours, a resolver, a proxy.
    ///
    /// Redirects, repeating, the connect timeout and the HTTP version are set after it. Do
    /// not set a `timeout` or `read_timeout`: they would cut streams of events, and calls
    /// have limits of their own.
    #[must_use]
    pub fn with_client(
        self,
        customize: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.with(|shared| shared.customize = Some(Arc::new(customize)))
    }

    /// Asks `authorize` for the tokens of servers that need one.
    #[must_use]
    pub fn with_authorize(self, authorize: impl Authorize) -> Self {
        self.with(|shared| {
            shared.authorize = Some(Arc::new(authorize));
            shared.credentials = Arc::default();
        })
    }

    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::unwrap_or_clone(self.0);
        change(&mut shared);
        Self(Arc::new(shared))
    }

    async fn start(
        self,
        config: ServerConfig,
        remote: Remote,
        mut terms: Terms,
    ) -> Result<Arc<dyn Link>, Failure> {
        let first = self.attempt(&config, &remote, &terms).await;
        let Err(failure) = first else { return first };
        if terms.version.is_some() || !speaks_other(&failure) {
            return Err(failure);
        }
        terms.version = Some(ProtocolVersion::NO_INITIALIZE);
        match self.attempt(&config, &remote, &terms).await {
            // Neither: what was said to the one that most servers speak says more.
            Err(second) if speaks_other(&second) => Err(failure),
            second => second,
        }
    }

    async fn attempt(
        &self,
        config: &ServerConfig,
        remote: &Remote,
        terms: &Terms,
    ) -> Result<Arc<dyn Link>, Failure> {
        let target = self.target(config, remote).map_err(Failure::from)?;
        let server = Server::Remote(Farewell::default());
        shake(carry(target), server, terms).await
    }

    fn target(&self, config: &ServerConfig, remote: &Remote) -> Result<Target, Unusable> {
        let url = url(remote)?;
        let client = client::build(&url, &self.0)?;
        let target = Target::new(client, url, remote)?;
        Ok(target.with_credentials(self.credentials(config)))
    }

    /// One for all connections to a server.
    fn credentials(&self, config: &ServerConfig) -> Option<Arc<Credentials>> {
        let authorize = self.0.authorize.as_ref()?;
        let mut all = self
            .0
            .credentials
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, held| held.strong_count() > 0);
        let key = Key::new(config, None);
        if let Some(held) = all.get(&key).and_then(Weak::upgrade) {
            return Some(held);
        }
        let held = Arc::new(Credentials::new(Arc::clone(authorize), config.clone()));
        all.insert(key, Arc::downgrade(&held));
        Some(held)
    }
}

impl Default for HttpConnect {
    fn default() -> Self {
        Self::new()
    }
}

impl Connect for HttpConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let Endpoint::Http(remote) = config.endpoint() else {
            return future::err(unsupported(config.family())).boxed();
        };
        let terms = Terms {
            host: host.clone(),
            version: config.protocol_version().cloned(),
            grace: Grace::default(),
            deadline,
        };
        let remote = remote.clone();
        self.clone().start(config.clone(), remote, terms).boxed()
    }
}

// === impl Shared ===

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnect")
            .field("connect_timeout", &self.connect_timeout)
            .field("authorizes", &self.authorize.is_some())
            .finish_non_exhaustive()
    }
}

// === impl Unusable ===

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        Self::new(Class::NotSent)
            .with_phase(Phase::Connect)
            .with_permanent()
            .with_source(unusable)
    }
}
