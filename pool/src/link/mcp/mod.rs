//! An MCP connection over our own wire.

mod calls;
mod client;
mod lists;
mod news;
mod request;
mod salvage;
mod supervisor;
mod tasks;
mod version;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::{self, BoxFuture, FutureExt};
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolResponse, ClientCapabilities, CompleteRequestParams, CompleteResult, DetailedTask,
        GetPromptRequestParams, GetPromptResult, GetTaskParams, Prompt, ReadResourceRequestParams,
        ReadResourceResult, Resource, ResourceTemplate, Tool, UpdateTaskParams,
    },
    service::RunningService,
};
use steadfast_classify::{Failure, Flight};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Closed, Link, Lost, server::Server};
use crate::{
    Listing, ToolCall,
    error::{Refused, refused},
    process::Grace,
    wire::{List, Trace, Wire, WireTasks},
};

pub(crate) use client::Client;
use supervisor::Supervisor;

pub use version::VersionMismatch;
pub(crate) use version::agreed;

pub(crate) type Running = RunningService<RoleClient, Client>;

pub(crate) struct McpLink {
    peer: Peer<RoleClient>,
    wire: Arc<Wire>,
    /// What each request announces, where the protocol has no handshake for it.
    announced: Option<ClientCapabilities>,
    server: Server,
    lost: watch::Receiver<Option<Lost>>,
    closed: watch::Receiver<Option<Closed>>,
    close: watch::Sender<Option<Duration>>,
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
        server: Server,
        grace: Grace,
    ) -> Arc<Self> {
        let introduction = running.service().introduction(running.peer());
        let announced = introduction.as_ref().map(|us| us.client_capabilities());
        if let Some(us) = introduction {
            wire.introduce(us);
        }
        let (lost, lost_seen) = watch::channel(None);
        let (closed, closed_seen) = watch::channel(None);
        let link = Arc::new(Self {
            peer: running.peer().clone(),
            wire: Arc::clone(&wire),
            announced: announced.flatten(),
            server: server.clone(),
            lost: lost_seen,
            closed: closed_seen,
            close: watch::Sender::new(None),
            abandon: CancellationToken::new(),
        });
        let supervisor = Supervisor {
            wire,
            tasks: Some(tasks),
            running,
            server,
            grace,
            lost,
            closed,
            close: link.close.subscribe(),
            abandon: link.abandon.clone(),
        };
        tokio::spawn(news::subscribe(link.peer.clone(), Arc::clone(&link.wire)));
        tokio::spawn(supervisor.run());
        link
    }
}

impl Link for McpLink {
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>> {
        if self.wire.is_task_only(call.tool()) && !self.follows_tasks() {
            return future::err(refused(Refused::NeedsTasks)).boxed();
        }
        let (request, options) = calls::tool_request(call, self.announced.as_ref());
        let trace = Trace::tied(flight, call.ties().cloned());
        async move { calls::tool_answer(self.request(request, options, trace).await?) }.boxed()
    }

    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Tool>, Failure>> {
        async move { self.tools().await }.boxed()
    }

    fn list_prompts(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Prompt>, Failure>> {
        async move { self.prompts().await }.boxed()
    }

    fn list_resources(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Resource>, Failure>> {
        async move { self.resources().await }.boxed()
    }

    fn list_resource_templates(
        self: Arc<Self>,
    ) -> BoxFuture<'static, Result<Listing<ResourceTemplate>, Failure>> {
        async move { self.resource_templates().await }.boxed()
    }

    fn get_prompt(
        self: Arc<Self>,
        params: GetPromptRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<GetPromptResult, Failure>> {
        async move { self.prompt(params, flight).await }.boxed()
    }

    fn read_resource(
        self: Arc<Self>,
        params: ReadResourceRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<ReadResourceResult, Failure>> {
        async move { self.resource(params, flight).await }.boxed()
    }

    fn complete(
        self: Arc<Self>,
        params: CompleteRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CompleteResult, Failure>> {
        async move { self.completion(params, flight).await }.boxed()
    }

    fn get_task(
        self: Arc<Self>,
        params: GetTaskParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<DetailedTask, Failure>> {
        async move { self.task(params, flight).await }.boxed()
    }

    fn update_task(
        self: Arc<Self>,
        params: UpdateTaskParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        async move { self.tell_task(params, flight).await }.boxed()
    }

    fn cancel_task(&self, task: &str) -> bool {
        self.wire.cancel_task(task)
    }

    fn ping(self: Arc<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        async move { self.sign_of_life().await }.boxed()
    }

    fn announces_tools(&self) -> bool {
        self.announces()
    }

    fn tools_changed(&self) -> watch::Receiver<u64> {
        self.wire.changes(List::Tools)
    }

    fn prompts_changed(&self) -> watch::Receiver<u64> {
        self.wire.changes(List::Prompts)
    }

    fn resources_changed(&self) -> watch::Receiver<u64> {
        self.wire.changes(List::Resources)
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
            // Its supervisor ended without a word: with its runtime, which killed all.
            let unsaid = Closed::unproven(Duration::ZERO);
            seen.ok().and_then(|seen| *seen).unwrap_or(unsaid)
        }
        .boxed()
    }

    fn kill(&self) {
        self.abandon.cancel();
        self.server.kill();
    }

    fn pid(&self) -> Option<u32> {
        self.server.pid()
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
            .field("pid", &self.pid())
            .field("traffic", &self.wire.traffic())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
