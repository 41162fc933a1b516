//! A session's hold on a server.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use rmcp::model::{CallToolResult, Tool};
use steadfast_classify::{Call, Class, Failure, Flight, Origin, Stage};
use tower_service::Service;

use crate::{
    Link, ServerConfig, ToolCall, ToolHints,
    entry::Patience,
    error::{Refused, refused},
    seat::Seat,
};

/// A session's hold on a server, and the innermost service of a stack.
///
/// It is a seat, not a socket: it survives the connection. A call on it uses the
/// connection there is, waits for the one that is being made, or makes one; and when a
/// connection dies, each call on it ends at once, as [`NotSent`](Class::NotSent) if it
/// provably never left and as [`Unknown`](Class::Unknown) if it may have run. Nothing is
/// ever repeated here.
///
/// Clones share the seat; it is given up with the last of them, or with the session.
/// Always ready. Dropping a call's future cancels it on the wire.
#[derive(Clone)]
pub struct Lease {
    seat: Arc<Seat>,
}

/// The answer to a call on a [`Lease`].
///
/// # Cancel safety
///
/// Dropping it takes the call back if it was not begun to be sent, and else tells the
/// server, once, that it is not wanted any more. Whether it ran is then unknown.
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture(BoxFuture<'static, Result<CallToolResult, Failure>>);

/// The tools that a session sees of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolView {
    /// The tools that pass the session's filter, in the server's order.
    pub tools: Vec<Tool>,
    /// Grows with every list that was taken over from the server; 0 if there was none yet.
    pub generation: u64,
    /// Why the list could not be had anew, if it could not: then it is an older one.
    pub stale: Option<Failure>,
}

// === impl Lease ===

impl Lease {
    pub(crate) const fn new(seat: Arc<Seat>) -> Self {
        Self { seat }
    }

    /// The server's name.
    #[must_use]
    pub fn server(&self) -> &Arc<str> {
        self.seat.station().key().name()
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
        let (config, list) = (self.config(), self.seat.station().tools());
        let hints = list
            .get(&tool)
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

    /// The tools as this session sees them. Empty before the first connection.
    #[must_use]
    pub fn tools(&self) -> ToolView {
        let list = self.seat.station().tools();
        let filter = self.config().filter();
        ToolView {
            tools: list
                .tools
                .iter()
                .filter(|tool| filter.allows(&tool.name))
                .cloned()
                .collect(),
            generation: list.generation,
            stale: list.stale.clone(),
        }
    }

    /// Waits until the server can be called, starting it where it does not run.
    ///
    /// # Errors
    ///
    /// If it could not be started within its start limit, or the session was closed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. The start goes on while somebody else waits for it.
    pub async fn ready(&self) -> Result<(), Failure> {
        let station = self.seat.station();
        tokio::select! {
            biased;
            () = self.seat.scope().closed() => Err(refused(Refused::SessionClosed)),
            ready = station.ready(Patience::Until(station.patience())) => ready.map(drop),
        }
    }

    fn origin(&self, call: &ToolCall) -> Origin {
        Origin::server(Arc::clone(self.server())).with_operation(Arc::clone(call.tool()))
    }

    /// What can be said without a connection.
    fn refuse(&self, call: &ToolCall) -> Option<Failure> {
        if self.seat.scope().is_closed() {
            return Some(refused(Refused::SessionClosed));
        }
        if !self.config().filter().allows(call.tool()) {
            return Some(refused(Refused::Excluded));
        }
        None
    }

    async fn connection(&self, flight: &Flight) -> Result<Arc<dyn Link>, Failure> {
        let station = self.seat.station();
        match station.link() {
            Some(link) => Ok(link),
            None => {
                // Starting is not connecting: it has a limit of its own.
                flight.starting(station.start_timeout());
                station.ready(Patience::Call).await
            }
        }
    }

    async fn run(self, call: ToolCall, flight: Flight) -> Result<CallToolResult, Failure> {
        let station = self.seat.station();
        let _running = station.run_call();
        let work = async {
            let link = self.connection(&flight).await?;
            let _place = match station.in_flight() {
                Some(places) => places.acquire().await.ok(),
                None => None,
            };
            link.call(&call, flight.clone()).await
        };
        let result = tokio::select! {
            biased;
            () = self.seat.scope().closed() => Err(cut_off(&flight)),
            result = work => result,
        };
        result.map_err(|failure| failure.with_origin(&self.origin(&call)))
    }
}

impl Service<ToolCall> for Lease {
    type Response = CallToolResult;
    type Error = Failure;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: ToolCall) -> CallFuture {
        let carried = call.context_mut().and_then(|context| context.take_flight());
        let flight = carried.unwrap_or_default();
        flight.describe(self.origin(&call));
        if let Some(failure) = self.refuse(&call) {
            let failure = failure.with_origin(&self.origin(&call));
            return CallFuture(Box::pin(std::future::ready(Err(failure))));
        }
        // Claimed here, so that whoever gives up from now on can prove it was not sent.
        if !flight.queued() {
            let withdrawn = Failure::new(Class::NotSent).with_origin(&self.origin(&call));
            return CallFuture(Box::pin(std::future::ready(Err(withdrawn))));
        }
        CallFuture(Box::pin(self.clone().run(call, flight)))
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

/// A call whose session was closed while it ran.
fn cut_off(flight: &Flight) -> Failure {
    let not_sent = flight.withdraw() || flight.stage().0 == Stage::Withdrawn;
    Failure::new(Class::Cancelled)
        .with_may_have_run(!not_sent)
        .with_layer("pool")
        .with_source(Refused::SessionClosed)
}

// === impl CallFuture ===

impl Future for CallFuture {
    type Output = Result<CallToolResult, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for CallFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallFuture").finish()
    }
}
