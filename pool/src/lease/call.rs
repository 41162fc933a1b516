//! Tool calls on a lease.

use std::{
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt as _};
use rmcp::model::{CallToolResponse, CallToolResult};
use steadfast_classify::{Call as _, Class, Failure, Flight, Origin, Stage};
use tower_service::Service;

use super::{
    Lease,
    span::{Request, tool_error},
};
use crate::{
    ToolCall,
    ask::{Owned, Owner},
    entry::Use,
    error::Refused,
};

/// The answer to a call on a [`Lease`].
///
/// # Cancel safety
///
/// Dropping it takes the call back if it was not begun to be sent, and else tells the
/// server, once, that it is not wanted any more. Whether it ran is then unknown.
#[must_use = "futures do nothing unless polled"]
pub struct CallFuture(BoxFuture<'static, Result<CallToolResult, Failure>>);

// === impl Lease ===

impl Lease {
    async fn run(self, mut call: ToolCall, flight: Flight) -> Result<CallToolResult, Failure> {
        let (scope, host) = (self.seat.scope(), self.seat.station().host());
        let owner = Owner::new(scope, self.server(), call.tool(), &flight);
        let _owned = owner.clone().map(|owner| Owned::new(owner, host));
        call.tie(&flight, owner);
        let request = Request::tool_call(&self, &call, &flight);
        let work = async {
            let connection = self.checkout(&flight, Use::Tool(call.tool())).await?;
            let sent = flight.clone();
            let answer = connection.call(&flight, |link| link.call(&call, sent));
            let answer = answer.await?;
            // Between its requests it needs none, but it is a call that runs.
            let _running = connection.into_running();
            self.finish(answer, &call, &flight).await
        };
        let work = self.unless_closed(&flight, work);
        let result = request.around(tool_error, work).await;
        result.map_err(|failure| failure.with_origin(&self.origin(&call)))
    }

    /// From what the server answered first to the result.
    async fn finish(
        &self,
        answer: CallToolResponse,
        call: &ToolCall,
        flight: &Flight,
    ) -> Result<CallToolResult, Failure> {
        match answer {
            CallToolResponse::Complete(result) => Ok(result),
            CallToolResponse::Task(created) => self.follow(created, call, flight).await,
            CallToolResponse::InputRequired(asked) => {
                let result = self.rounds(asked, call, flight).await;
                // Whatever became of it: it was begun.
                result.map_err(|failure| failure.with_may_have_run(true))
            }
            _ => Err(Failure::new(Class::Unknown)
                .with_source("the answer to tools/call is no tool result")),
        }
    }

    /// Does `work`, unless the session is closed meanwhile: then it is dropped, and so
    /// cancelled on the wire.
    pub(super) async fn unless_closed<T>(
        &self,
        flight: &Flight,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.seat.scope().closed() => Err(cut_off(flight)),
            result = work => result,
        }
    }

    fn origin(&self, call: &ToolCall) -> Origin {
        Origin::server(Arc::clone(self.server())).with_operation(Arc::clone(call.tool()))
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
        let origin = self.origin(&call);
        if let Some(failure) = self.refuse(Some(call.tool())) {
            return CallFuture::failed(failure.with_origin(&origin));
        }
        flight.describe(origin);
        // Claimed here, so that whoever gives up from now on can prove it was not sent.
        if !flight.queued() {
            let withdrawn = Failure::new(Class::NotSent).with_origin(&self.origin(&call));
            return CallFuture::failed(withdrawn);
        }
        CallFuture(self.clone().run(call, flight).boxed())
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

impl CallFuture {
    fn failed(failure: Failure) -> Self {
        Self(ready(Err(failure)).boxed())
    }
}

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
