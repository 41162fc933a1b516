//! From a wire to a connection that can be used.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use rmcp::{ServiceExt as _, model::Implementation, service::ClientInitializeError};
use steadfast_classify::{Class, Failure, Phase, mcp::initialize_failure};
use tokio::time::{self, Instant};

use super::{
    Link, Lost,
    mcp::{Client, McpLink, agreed},
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

/// A wire, what carries it, and what `rmcp` sees of it.
pub(super) type Carried = (Arc<Wire>, WireTasks, WireTransport);

/// A handshake that failed, with what is known of the server.
#[derive(Debug)]
struct HandshakeFailed {
    cause: Failure,
    lost: Lost,
}

/// Makes the handshake by `deadline`. Where nothing comes of it, or this is dropped, what
/// stands behind the connection is ended.
pub(super) async fn shake(
    (wire, tasks, transport): Carried,
    server: Server,
    host: &Host,
    grace: Grace,
    deadline: Instant,
) -> Result<Arc<dyn Link>, Failure> {
    let mut guard = KillOnDrop::new(&server);
    let us = Implementation::new("steadfast", env!("CARGO_PKG_VERSION"));
    let client = Client::new(host, us);
    let begun = Instant::now();
    match time::timeout_at(deadline, client.serve(transport)).await {
        Ok(Ok(running)) => {
            if let Err(failure) = agreed(&running) {
                server.shutdown(tasks, grace).await;
                return Err(failure);
            }
            guard.disarm();
            Ok(McpLink::new(running, wire, tasks, server, grace))
        }
        Ok(Err(error)) => {
            let failure = broken_off(error, &server).await;
            server.shutdown(tasks, grace).await;
            Err(failure)
        }
        Err(_elapsed) => Err(timed_out(begun.elapsed(), &server)),
    }
}

/// A handshake that ended with an error: adds how the server ended, and its last words.
async fn broken_off(error: ClientInitializeError, server: &Server) -> Failure {
    let exit = server.last_words(LAST_WORDS).await;
    let reason = match exit {
        Some(_) => "the server ended before it was ready",
        None => "the handshake failed",
    };
    let lost = server.describe(reason, exit);
    let cause = initialize_failure(error);
    cause.clone().with_source(HandshakeFailed { cause, lost })
}

/// A handshake that was not answered in time. What the server wrote may say why.
fn timed_out(elapsed: Duration, server: &Server) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_elapsed(elapsed)
        .with_source(server.describe("the server was not ready in time", None))
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
