//! An MCP connection over our own wire.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt};
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest,
        ListToolsRequest, PaginatedRequestParams, RequestMetaObject, ServerResult, Tool,
    },
    service::{PeerRequestOptions, RequestHandle, RunningService},
};
use steadfast_classify::{
    Call as _, Class, Failure, Flight, Phase,
    mcp::{Delivery, service_failure},
};
use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;

use super::{Closed, Link, Lost, held::Held, held::exited};
use crate::{
    ToolCall,
    process::{Exit, Grace, Process},
    wire::{Ended, Trace, Wire, WireTasks},
};

/// The `_meta` key of the idempotency key of a logical call.
pub(crate) const IDEMPOTENCY_META_KEY: &str = "io.github.steadfast/idempotency-key";

/// How long an answer that has been read may take to come through `rmcp` once the
/// connection has ended.
const DELIVERY: Duration = Duration::from_secs(1);

/// How long a dead server's output may still be read: a child of it may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// More pages than any real server has.
const MAX_PAGES: usize = 1000;

pub(crate) type Running = RunningService<RoleClient, ClientConfig>;

pub(crate) struct McpLink {
    peer: Peer<RoleClient>,
    wire: Arc<Wire>,
    pid: Option<u32>,
    lost: watch::Receiver<Option<Lost>>,
    closed: watch::Receiver<Option<Closed>>,
    close: watch::Sender<Option<Duration>>,
    abandon: CancellationToken,
}

/// Ends everything that belongs to a connection, in the right order.
struct Supervisor {
    wire: Arc<Wire>,
    tasks: WireTasks,
    running: Running,
    process: Option<Held>,
    grace: Grace,
    lost: watch::Sender<Option<Lost>>,
    closed: watch::Sender<Option<Closed>>,
    close: watch::Receiver<Option<Duration>>,
    abandon: CancellationToken,
}

// === impl McpLink ===

impl McpLink {
    /// Takes charge of a connection that has made its handshake. Must be called within a
    /// tokio runtime.
    pub(crate) fn new(
        running: Running,
        wire: Arc<Wire>,
        tasks: WireTasks,
        process: Option<Held>,
        grace: Grace,
    ) -> Arc<Self> {
        let (lost, lost_seen) = watch::channel(None);
        let (closed, closed_seen) = watch::channel(None);
        let pid = process.as_ref().and_then(|held| held.with(Process::pid));
        let link = Arc::new(Self {
            peer: running.peer().clone(),
            wire: Arc::clone(&wire),
            pid,
            lost: lost_seen,
            closed: closed_seen,
            close: watch::Sender::new(None),
            abandon: CancellationToken::new(),
        });
        let supervisor = Supervisor {
            wire,
            tasks,
            running,
            process,
            grace,
            lost,
            closed,
            close: link.close.subscribe(),
            abandon: link.abandon.clone(),
        };
        tokio::spawn(supervisor.run());
        link
    }

    /// Sends one request and waits for its answer, or for the end of the connection.
    async fn request(
        &self,
        mut request: ClientRequest,
        options: PeerRequestOptions,
        flight: Flight,
    ) -> Result<ServerResult, Failure> {
        use rmcp::model::GetExtensions as _;

        let trace = Arc::new(Trace::new(flight));
        request.extensions_mut().insert(Arc::clone(&trace));
        let mut guard = AbandonOnDrop::new(&self.wire, &trace);
        let sent = tokio::select! {
            biased;
            sent = self.peer.send_request_with_option(request, options) => sent,
            () = self.ended() => return Err(self.loss(&trace)),
        };
        let RequestHandle { rx, .. } = match sent {
            Ok(handle) => handle,
            Err(error) => {
                self.ending().await;
                return Err(self.refine(service_failure(error, Delivery::NotHanded)));
            }
        };
        tokio::pin!(rx);
        let answer = tokio::select! {
            biased;
            answer = &mut rx => answer,
            () = self.ended() => match trace.flight().stage().0 {
                // Read before the end, and on its way through rmcp.
                steadfast_classify::Stage::Answered => {
                    match time::timeout(DELIVERY, &mut rx).await {
                        Ok(answer) => answer,
                        Err(_) => return Err(self.loss(&trace)),
                    }
                }
                _ => return Err(self.loss(&trace)),
            },
        };
        match answer {
            Ok(Ok(result)) => {
                guard.disarm();
                Ok(result)
            }
            Ok(Err(rmcp::ServiceError::TransportClosed)) | Err(_) => {
                self.ending().await;
                Err(self.loss(&trace))
            }
            Ok(Err(error)) => {
                guard.disarm();
                Err(service_failure(error, Delivery::Handed))
            }
        }
    }

    async fn ended(&self) {
        let mut lost = self.lost.clone();
        // An error means that the supervisor is gone, and the connection with it.
        let _ = lost.wait_for(Option::is_some).await;
    }

    /// `rmcp` may hear of the end first: a moment later it is known how the server ended.
    async fn ending(&self) {
        let _ = time::timeout(DELIVERY, self.ended()).await;
    }

    /// What the end of the connection means for a call on it.
    fn loss(&self, trace: &Trace) -> Failure {
        let failure = if trace.never_left() {
            Failure::new(Class::NotSent).with_phase(Phase::Connect)
        } else {
            Failure::new(Class::Unknown)
        };
        self.refine(failure)
    }

    fn refine(&self, failure: Failure) -> Failure {
        match &*self.lost.borrow() {
            Some(lost) => failure.with_source(lost.clone()),
            None => failure.with_source(Lost::new("the connection was closed")),
        }
    }
}

impl Link for McpLink {
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResult, Failure>> {
        let mut params = CallToolRequestParams::new(call.tool().to_string());
        params.arguments = call.arguments().cloned();
        let mut options = PeerRequestOptions::no_options();
        if let Some(key) = call
            .context()
            .and_then(|context| context.idempotency_key())
            .filter(|_| call.sends_idempotency_key())
        {
            let mut meta = RequestMetaObject::new();
            meta.0
                .0
                .insert(IDEMPOTENCY_META_KEY.into(), key.to_string().into());
            options = options.with_meta(meta);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        async move {
            let result = self.request(request, options, flight).await?;
            tool_result(result)
        }
        .boxed()
    }

    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Tool>, Failure>> {
        async move {
            let no_tools = self
                .peer
                .peer_info()
                .is_some_and(|info| info.capabilities.tools.is_none());
            if no_tools {
                return Ok(Vec::new());
            }
            let mut tools = Vec::new();
            let mut cursor = None;
            for _ in 0..MAX_PAGES {
                let page = self.tool_page(cursor.clone()).await?;
                tools.extend(page.tools);
                match page.next_cursor {
                    None => return Ok(tools),
                    same if same == cursor => return Err(endless("the same page again and again")),
                    next => cursor = next,
                }
            }
            Err(endless("more than 1000 pages"))
        }
        .boxed()
    }

    fn tools_changed(&self) -> watch::Receiver<u64> {
        self.wire.tools_changed()
    }

    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost> {
        async move {
            let mut lost = self.lost.clone();
            let seen = lost.wait_for(Option::is_some).await;
            seen.ok()
                .and_then(|seen| seen.clone())
                .unwrap_or_else(|| Lost::new("the connection was closed"))
        }
        .boxed()
    }

    fn close(self: Arc<Self>, limit: Duration) -> BoxFuture<'static, Closed> {
        self.close.send_replace(Some(limit));
        async move {
            let mut closed = self.closed.clone();
            let seen = closed.wait_for(Option::is_some).await;
            seen.ok().and_then(|seen| *seen).unwrap_or_default()
        }
        .boxed()
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }
}

impl McpLink {
    async fn tool_page(
        &self,
        cursor: Option<String>,
    ) -> Result<rmcp::model::ListToolsResult, Failure> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
            extensions: Default::default(),
        });
        let flight = Flight::new();
        // Claimed: if it is withdrawn, it was not sent.
        let _ = flight.queued();
        match self
            .request(request, PeerRequestOptions::no_options(), flight)
            .await?
        {
            ServerResult::ListToolsResult(page) => Ok(page),
            _ => Err(unreadable("the answer to tools/list is no list of tools")),
        }
    }
}

impl Drop for McpLink {
    fn drop(&mut self) {
        // Nobody is left who could close it.
        self.abandon.cancel();
    }
}

impl fmt::Debug for McpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpLink")
            .field("pid", &self.pid)
            .field("traffic", &self.wire.traffic())
            .finish_non_exhaustive()
    }
}

// === impl Supervisor ===

impl Supervisor {
    async fn run(mut self) {
        let abandon = self.abandon.clone();
        tokio::select! {
            biased;
            // Dropping a process kills all of it before it returns.
            () = abandon.cancelled() => {}
            () = self.serve() => return,
        }
        drop(self.process.as_ref().and_then(Held::take));
    }

    async fn serve(&mut self) {
        let lost = self.watch().await;
        self.lost.send_replace(Some(lost));
        let closed = self.end().await;
        self.closed.send_replace(Some(closed));
    }

    /// Returns once the connection is over, by itself or by us.
    async fn watch(&self) -> Lost {
        tokio::select! {
            biased;
            () = self.asked_to_close() => Lost::new("we closed the connection"),
            exit = exited(self.process.as_ref()) => self.after_exit(exit).await,
            ended = self.wire.ended() => self.after_end(ended).await,
        }
    }

    async fn asked_to_close(&self) {
        let mut close = self.close.clone();
        // The link keeps the sender; without one there is nobody to ask.
        if close.wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }

    /// The server's process ended: what it wrote before counts.
    async fn after_exit(&self, exit: Exit) -> Lost {
        let _ = time::timeout(LAST_WORDS, self.wire.ended()).await;
        self.describe("the server ended", Some(exit))
    }

    /// The wire ended: mostly because the process did, a moment ago.
    async fn after_end(&self, ended: Ended) -> Lost {
        let reason = match ended {
            Ended::OutputClosed => "the server closed its output",
            Ended::ReadFailed => "the server's output could not be read",
            Ended::WriteFailed => "the server closed its input",
            Ended::Closed => "we closed the connection",
        };
        let exit = time::timeout(LAST_WORDS, exited(self.process.as_ref())).await;
        self.describe(reason, exit.ok())
    }

    fn describe(&self, reason: &'static str, exit: Option<Exit>) -> Lost {
        let stderr = self.process.as_ref().and_then(Held::stderr);
        Lost::new(reason).with_process(exit, stderr)
    }

    /// Input first, then the process and all that it started, then what we hold of it.
    async fn end(&mut self) -> Closed {
        self.tasks.close_input().await;
        let process = self.process.as_ref().and_then(Held::take);
        let closed = match process {
            Some(process) => process.shutdown(self.closing()).await.into(),
            None => Closed::default(),
        };
        self.running.cancellation_token().cancel();
        closed
    }

    /// The steps of the end, shortened where the pool has less time.
    fn closing(&self) -> Grace {
        let limit = *self.close.borrow();
        limit.map_or(self.grace, |limit| self.grace.within(limit))
    }
}

/// Gives up on a request when its caller leaves before the answer.
struct AbandonOnDrop<'a> {
    wire: &'a Wire,
    trace: Option<&'a Trace>,
}

// === impl AbandonOnDrop ===

impl<'a> AbandonOnDrop<'a> {
    fn new(wire: &'a Wire, trace: &'a Trace) -> Self {
        Self {
            wire,
            trace: Some(trace),
        }
    }

    fn disarm(&mut self) {
        self.trace = None;
    }
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(trace) = self.trace {
            self.wire.abandon(trace, "the caller gave up");
        }
    }
}

/// What the result of a tool call holds. A result without content is one all the same.
fn tool_result(result: ServerResult) -> Result<CallToolResult, Failure> {
    match result {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::EmptyResult(_) => Ok(CallToolResult::default()),
        ServerResult::TaskAckResult(ack) => {
            let mut result = CallToolResult::default();
            result.meta = ack.meta;
            Ok(result)
        }
        ServerResult::CreateTaskResult(_) => Err(Failure::new(Class::Answered)
            .with_source("the server started a task, which was not asked for")),
        ServerResult::InputRequiredResult(_) => Err(Failure::new(Class::Answered)
            .with_source("the tool asks for input, and nobody here can give it")),
        _ => Err(unreadable("the answer to tools/call is no tool result")),
    }
}

fn unreadable(what: &'static str) -> Failure {
    Failure::new(Class::Unknown).with_source(what)
}

fn endless(what: &'static str) -> Failure {
    Failure::new(Class::Answered).with_source(format!("tools/list is endless: {what}"))
}
