//! A session's hold on a server.

mod call;
mod follow;
#[cfg(feature = "metrics")]
mod numbers;
mod requests;
mod rounds;
mod span;

use std::{fmt, sync::Arc};

use steadfast_classify::{Failure, Flight};

use crate::{
    PromptView, ResourceView, ServerConfig, ToolCall, ToolHints, ToolView,
    entry::{Checkout, Patience, Use},
    error::{Refused, refused},
    seat::Seat,
};

pub use call::CallFuture;

/// A session's hold on a server, and the innermost service of a stack.
///
/// It is a seat, not a socket: it survives the connection. A call on it uses the
/// connection there is, waits for the one that is being made, or makes one; and when a
/// connection dies, each call on it ends at once, as [`NotSent`] if it provably never left
/// and as [`Unknown`] if it may have run. Nothing is ever repeated here.
///
/// Clones share the seat; it is given up with the last of them, or with the session.
/// Always ready. Dropping a call's future cancels it on the wire.
///
/// Starting a server takes longer than a call should wait for a connection, so a call that
/// has to wait for a start says so to the timeout around it. It does not wait for the pause
/// that follows several losses in a row: it is `NotSent`, and says when to come back
/// (`retry_in`), so that whoever repeats it waits holding nothing.
///
/// [`NotSent`]: steadfast_classify::Class::NotSent
/// [`Unknown`]: steadfast_classify::Class::Unknown
#[derive(Clone)]
pub struct Lease {
    seat: Arc<Seat>,
}

// === impl Lease ===

impl Lease {
    pub(crate) const fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &Arc<str> {
        self.seat.station().name()
    }

    /// The configuration this lease was asked for with.
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        self.seat.config()
    }

    /// A call to `tool` that knows what is known of it: its effect by the configuration,
    /// else by the server's annotations if the server is trusted, else
    /// [`NonIdempotent`](steadfast_classify::Effect::NonIdempotent); its limits; and
    /// whether an old answer is acceptable.
    #[must_use]
    pub fn tool(&self, tool: impl Into<Arc<str>>) -> ToolCall {
        let tool = tool.into();
        let config = self.config();
        let catalog = self.seat.station().catalog(self.seat.era());
        let hints = catalog
            .as_deref()
            .and_then(|catalog| catalog.tool(&tool))
            .and_then(|tool| tool.annotations.as_ref())
            .map(ToolHints::from);
        ToolCall::new(Arc::clone(&tool))
            .for_server(
                Arc::clone(self.server()),
                Arc::clone(self.seat.scope().id()),
            )
            .with_effect(config.effect_for(&tool, hints))
            .with_configured_limits(config.limits_for(&tool))
            .with_configured_cacheable(config.cacheable(&tool))
            .with_idempotency_key(config.idempotency().sends())
    }

    /// The tools as this session sees them. Empty before the first connection, and once
    /// the session is closed or the server was taken out of the pool.
    #[must_use]
    pub fn tools(&self) -> ToolView {
        let sight = self.seat.sight();
        sight.map_or_else(ToolView::default, |(catalog, seen)| seen.tools(&catalog))
    }

    /// The prompts as this session sees them; they pass the same filter as its tools.
    /// Empty as [`tools`](Self::tools) are.
    #[must_use]
    pub fn prompts(&self) -> PromptView {
        let sight = self.seat.sight();
        sight.map_or_else(PromptView::default, |(catalog, seen)| {
            seen.prompts(&catalog)
        })
    }

    /// The resources of the server; no filter applies. Empty as [`tools`](Self::tools) are.
    #[must_use]
    pub fn resources(&self) -> ResourceView {
        let sight = self.seat.sight();
        sight.map_or_else(ResourceView::default, |(catalog, _)| catalog.resources())
    }

    /// Waits until the server can be called, starting it where it does not run.
    ///
    /// It waits for an old connection to end and for a pause after losses, if that is no
    /// longer than the start limit; then for its turn, if many servers are being started;
    /// then for the start itself, whose limit counts from the spawn.
    ///
    /// # Errors
    ///
    /// If it could not be started within its start limit, or the session was closed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. The start goes on while somebody else waits for it.
    pub async fn ready(&self) -> Result<(), Failure> {
        let seat = &self.seat;
        tokio::select! {
            biased;
            () = seat.scope().closed() => Err(refused(Refused::SessionClosed)),
            ready = seat.station().ready(seat.era(), seat.config(), Patience::Acquire) => ready,
        }
    }

    /// A connection, for one request.
    async fn checkout(&self, flight: &Flight, what: Use<'_>) -> Result<Checkout, Failure> {
        let seat = &self.seat;
        seat.station()
            .checkout(seat.era(), seat.config(), flight, what)
            .await
    }

    /// What can be said of a call to `name` without a connection.
    fn refuse(&self, name: Option<&str>) -> Option<Failure> {
        if self.seat.scope().is_closed() {
            return Some(refused(Refused::SessionClosed));
        }
        let excluded = name.is_some_and(|name| !self.config().filter().allows(name));
        excluded.then(|| refused(Refused::Excluded))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("server", self.server())
            .field("session", self.seat.scope().id())
            .finish_non_exhaustive()
    }
}
