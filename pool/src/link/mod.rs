//! What the pool needs of a connection, so that others can be brought.

mod any;
mod ending;
mod handshake;
mod held;
mod hosted;
#[cfg(feature = "http")]
mod http;
mod in_process;
mod mcp;
#[cfg(any(feature = "http", feature = "websocket"))]
mod refusal;
mod server;
mod stdio;
#[cfg(feature = "websocket")]
mod websocket;

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures::future::{self, BoxFuture, FutureExt};
use rmcp::model::{
    CallToolResponse, CompleteRequestParams, CompleteResult, DetailedTask, GetPromptRequestParams,
    GetPromptResult, GetTaskParams, Prompt, ReadResourceRequestParams, ReadResourceResult,
    Resource, ResourceTemplate, Tool, UpdateTaskParams,
};
use steadfast_classify::{Class, Failure, Flight};
use tokio::{sync::watch, time::Instant};

use crate::{Host, Listing, ServerConfig, ToolCall};

pub use any::AnyConnect;
pub use ending::{Closed, Lost};
#[cfg(feature = "http")]
pub use http::HttpConnect;
pub use in_process::InProcessConnect;
pub use mcp::VersionMismatch;
pub use stdio::StdioConnect;
#[cfg(feature = "websocket")]
pub use websocket::{WebSocketConnect, WebSocketFailed};

/// Makes connections. The pool makes one for each key, when it is needed, and never two
/// for one key at once.
pub trait Connect: Debug + Send + Sync + 'static {
    /// Starts or reaches a server, and makes the handshake.
    ///
    /// It should be done, or give up and say why, by `deadline`; the pool bounds it a
    /// little after that. The pool may drop the future at any time: whatever was started
    /// must then end at once, before the drop returns.
    ///
    /// `host` is what the connection is to announce, and who answers what the server asks.
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>>;

    /// Ends everything that was started and is left, at once, in a runtime or not; what
    /// is still being started too. Called when a pool is dropped without being drained,
    /// and at the end of a drain that did not get by without. Nothing is started after
    /// it, so a connector serves one pool. Default: nothing.
    fn kill_all(&self) {}
}

/// One live connection to one server.
///
/// Whatever a connection does not say it can do, it cannot: the defaults list nothing and
/// refuse the rest.
pub trait Link: Debug + Send + Sync + 'static {
    /// Calls a tool, and gives what the server answers: a result, a task that it began, or
    /// a question.
    ///
    /// The flight is claimed already. Ask it [`sending`](Flight::sending) just before the
    /// first byte, and send nothing on `false`: a call whose flight can be withdrawn counts
    /// as not sent. Once the connection has ended, or is being closed, the call must end
    /// at once; one that takes longer than a moment is ended for it.
    ///
    /// Dropping the future cancels the call on the wire.
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>>;

    /// All tools of the server, all pages of them. What cannot be used is left out, and
    /// said to be; of several with one name the pool takes the first.
    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Tool>, Failure>>;

    /// All prompts of the server, all pages of them.
    fn list_prompts(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Prompt>, Failure>> {
        future::ok(Listing::default()).boxed()
    }

    /// All resources of the server, all pages of them.
    fn list_resources(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Resource>, Failure>> {
        future::ok(Listing::default()).boxed()
    }

    /// All templates of resources of the server, all pages of them.
    fn list_resource_templates(
        self: Arc<Self>,
    ) -> BoxFuture<'static, Result<Listing<ResourceTemplate>, Failure>> {
        future::ok(Listing::default()).boxed()
    }

    /// Gets a prompt. The flight as in [`call`](Self::call).
    fn get_prompt(
        self: Arc<Self>,
        _params: GetPromptRequestParams,
        _flight: Flight,
    ) -> BoxFuture<'static, Result<GetPromptResult, Failure>> {
        future::err(unsupported("prompts")).boxed()
    }

    /// Reads a resource. The flight as in [`call`](Self::call).
    fn read_resource(
        self: Arc<Self>,
        _params: ReadResourceRequestParams,
        _flight: Flight,
    ) -> BoxFuture<'static, Result<ReadResourceResult, Failure>> {
        future::err(unsupported("resources")).boxed()
    }

    /// Completes an argument. The flight as in [`call`](Self::call).
    fn complete(
        self: Arc<Self>,
        _params: CompleteRequestParams,
        _flight: Flight,
    ) -> BoxFuture<'static, Result<CompleteResult, Failure>> {
        future::err(unsupported("completion")).boxed()
    }

    /// Asks how a task is that a call began; a read, which may be repeated. The flight as in
    /// [`call`](Self::call).
    fn get_task(
        self: Arc<Self>,
        _params: GetTaskParams,
        _flight: Flight,
    ) -> BoxFuture<'static, Result<DetailedTask, Failure>> {
        future::err(unsupported("tasks")).boxed()
    }

    /// Answers what a task asks for. The flight as in [`call`](Self::call).
    fn update_task(
        self: Arc<Self>,
        _params: UpdateTaskParams,
        _flight: Flight,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        future::err(unsupported("tasks")).boxed()
    }

    /// Tells the server that nobody waits for a task any more, once, behind everything else
    /// that is on its way; without waiting, in a runtime or not. `false`: it cannot be told
    /// on this connection. Default: it cannot.
    fn cancel_task(&self, _task: &str) -> bool {
        false
    }

    /// Asks for a sign of life. Any answer is one, an error too. Default: it lives.
    fn ping(self: Arc<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        future::ok(()).boxed()
    }

    /// Whether the server promised to tell when its list of tools changes. Then the list
    /// is right until it does, and what is not in it is refused without asking. Default:
    /// it did not.
    fn announces_tools(&self) -> bool {
        false
    }

    /// Counts how often the server said that its list of tools had changed. Default: it
    /// never does.
    fn tools_changed(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// The same for its list of prompts.
    fn prompts_changed(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// The same for its lists of resources and their templates.
    fn resources_changed(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// Resolves when the connection has ended by itself.
    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost>;

    /// Ends the connection within `limit`, or within its own steps if they are shorter,
    /// and resolves once nothing is left of it. Called once.
    fn close(self: Arc<Self>, limit: Duration) -> BoxFuture<'static, Closed>;

    /// Ends the connection at once, whatever it is doing, a close included, in a runtime or
    /// not. Default: nothing; then dropping it has to do that.
    fn kill(&self) {}

    /// The server's process, if it is one that we started.
    fn pid(&self) -> Option<u32> {
        None
    }
}

fn unsupported(what: &'static str) -> Failure {
    Failure::new(Class::Answered)
        .with_may_have_run(false)
        .with_source(format!("this connection has no {what}"))
}
