//! From a wire to a connection that can be used.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use rmcp::{
    ServiceExt as _,
    model::{Implementation, ProtocolVersion},
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _},
};
use steadfast_classify::{Class, Failure, Phase, mcp::initialize_failure};
use tokio::time::{self, Instant};

use super::{
    Link, Lost,
    mcp::{Client, McpLink, Running, agreed},
    server::{KillOnDrop, Server},
};
use crate::{
    Host,
    process::Grace,
    wire::{Wire, WireTasks, WireTransport},
};

/// How long a server that broke off its handshake may take to end, so that it can be told
/// how it did.
const LAST_WORDS: Duration = Duration::from_millis(250);

const ENDED: &str = "the server ended before it was ready";

/// A wire, what carries it, and what `rmcp` sees of it.
pub(super) type Carried = (Arc<Wire>, WireTasks, WireTransport);

/// A handshake that failed, with what is known of the server.
#[derive(Debug)]
struct HandshakeFailed {
    cause: Failure,
    lost: Lost,
}

/// What a handshake goes by.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) host: Host,
    /// The version of the protocol to speak; negotiated if there is none.
    pub(super) version: Option<ProtocolVersion>,
    pub(super) grace: Grace,
    pub(super) deadline: Instant,
}

/// Makes the handshake by its deadline. Where nothing comes of it, or this is dropped, what
/// stands behind the connection is ended.
pub(super) async fn shake(
    (wire, tasks, transport): Carried,
    server: Server,
    terms: &Terms,
) -> Result<Arc<dyn Link>, Failure> {
    let (grace, deadline) = (terms.grace, terms.deadline);
    let mut guard = KillOnDrop::new(&server);
    let begun = Instant::now();
    let serving = time::timeout_at(deadline, serve(&wire, transport, terms));
    let served = tokio::select! {
        biased;
        served = serving => served,
        // A child may hold its output: then nothing else tells that no answer will come.
        exit = gone(&server) => {
            let lost = server.describe(ENDED, Some(exit));
            server.shutdown(tasks, grace).await;
            return Err(not_sent(begun.elapsed(), lost));
        }
    };
    match served {
        Ok(Ok(running)) => {
            if let Err(failure) = agreed(&running) {
                server.shutdown(tasks, grace).await;
                return Err(failure);
            }
            guard.disarm();
            Ok(McpLink::new(running, wire, tasks, server, grace))
        }
        Ok(Err(error)) => {
            let failure = match refusal(&wire) {
                Some(refusal) => refusal,
                None => broken_off(error, &server).await,
            };
            server.shutdown(tasks, grace).await;
            Err(failure)
        }
        Err(_elapsed) => Err(timed_out(begun.elapsed(), &server)),
    }
}

async fn serve(
    wire: &Arc<Wire>,
    transport: WireTransport,
    terms: &Terms,
) -> Result<Running, ClientInitializeError> {
    let us = Implementation::new("steadfast", env!("CARGO_PKG_VERSION"));
    match &terms.version {
        // From then on there is no handshake: the server is asked what it is.
        Some(version) if !version.has_initialize() => {
            let discover = ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            };
            let client = Client::new(&terms.host, us, version.clone(), wire);
            client.serve_with_lifecycle(transport, discover).await
        }
        version => {
            let newest = ProtocolVersion::LATEST_WITH_INITIALIZE;
            let version = version.clone().unwrap_or(newest);
            Client::new(&terms.host, us, version, wire)
                .serve(transport)
                .await
        }
    }
}

/// What the wire knows of the handshake's request, if that failed in it.
#[cfg(feature = "http")]
fn refusal(wire: &Wire) -> Option<Failure> {
    wire.refusal().map(super::refusal::refused)
}

#[cfg(not(feature = "http"))]
const fn refusal(_: &Wire) -> Option<Failure> {
    None
}

/// A handshake that ended with an error: adds how the server ended, and its last words.
async fn broken_off(error: ClientInitializeError, server: &Server) -> Failure {
    let exit = server.last_words(LAST_WORDS).await;
    let reason = match exit {
        Some(_) => ENDED,
        None => "the handshake failed",
    };
    let lost = server.describe(reason, exit);
    let cause = initialize_failure(error);
    cause.clone().with_source(HandshakeFailed { cause, lost })
}

/// Resolves when the server has ended, and what it wrote before has been read.
async fn gone(server: &Server) -> Arc<str> {
    let exit = server.exited().await;
    time::sleep(LAST_WORDS).await;
    exit
}

/// A handshake that was not answered in time. What the server wrote may say why.
fn timed_out(elapsed: Duration, server: &Server) -> Failure {
    not_sent(
        elapsed,
        server.describe("the server was not ready in time", None),
    )
}

fn not_sent(elapsed: Duration, lost: Lost) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_elapsed(elapsed)
        .with_source(lost)
}

// === impl HandshakeFailed ===

impl fmt::Display for HandshakeFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lost)?;
        match self.cause.source() {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl Error for HandshakeFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}
