//! Servers that live in this program, spoken to over memory.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use steadfast_classify::Failure;
use tokio::{
    io::{self, DuplexStream},
    time::Instant,
};

use super::{
    Connect, Link,
    any::refuse,
    handshake::{Terms, shake},
    hosted::Hosted,
    server::Server,
    stdio::MAX_LINE,
};
use crate::{
    Endpoint, Host, ServerConfig,
    config::InProcess,
    process::Grace,
    wire::{Framing, Wire},
};

/// How much may lie between the two ends: as much as in a pipe, so that a server that
/// does not read is noticed as with one.
const BUFFER: usize = 64 * 1024;

/// Lets servers that live in this program serve connections of their own.
///
/// Each connection is one task, which ends with it: a server whose input has ended is
/// given some time to return, and is aborted then. One that returns or panics by itself
/// ends its connection.
#[derive(Clone, Debug)]
pub struct InProcessConnect {
    grace: Grace,
}

// === impl InProcessConnect ===

impl InProcessConnect {
    /// Gives servers `eof` of `grace` to return once their input has ended, and `kill` of
    /// it to end once they are aborted.
    #[must_use]
    pub const fn new(grace: Grace) -> Self {
        Self { grace }
    }

    async fn start(server: InProcess, terms: Terms) -> Result<Arc<dyn Link>, Failure> {
        let (ours, theirs): (DuplexStream, _) = io::duplex(BUFFER);
        let server = Server::Task(Hosted::start(&server, theirs));
        let (output, input) = io::split(ours);
        let carried = Wire::start(output, input, Framing::new(MAX_LINE));
        shake(carried, server, &terms).await
    }
}

impl Connect for InProcessConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let Endpoint::InProcess(server) = config.endpoint() else {
            return refuse(config);
        };
        let terms = Terms {
            host: host.clone(),
            version: config.protocol_version().cloned(),
            grace: self.grace,
            deadline,
        };
        Self::start(server.clone(), terms).boxed()
    }
}
