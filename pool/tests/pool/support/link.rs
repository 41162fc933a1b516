//! One in-memory connection.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResult,
    Prompt, ReadResourceRequestParams, ReadResourceResult, Resource, Tool,
};
use steadfast_classify::{Class, Failure, Flight};
use steadfast_pool::{Closed, Link, Lost, ToolCall};
use tokio::{
    sync::watch,
    time::{self, Instant},
};

use super::world::{Alive, Listing, World};

#[derive(Debug)]
pub(crate) struct FakeLink {
    number: usize,
    server: String,
    world: World,
    over: watch::Sender<Option<Over>>,
    changed: watch::Sender<u64>,
    superseded: watch::Sender<bool>,
    state: Mutex<State>,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Over {
    Lost(Lost),
    Closing,
    Killed,
}

#[derive(Debug)]
struct State {
    alive: Option<Alive>,
    /// The calls that were executed.
    executed: usize,
    /// The calls that were cancelled after they were sent.
    cancelled: usize,
    running: usize,
    closes: usize,
    lists: Vec<Instant>,
    pings: usize,
}

/// Counts a call as running, and as cancelled if it is dropped before it ended.
struct Running<'a>(&'a FakeLink, bool);

// === impl FakeLink ===

impl FakeLink {
    pub(super) fn new(number: usize, server: String, world: World, alive: Alive) -> Self {
        Self {
            number,
            server,
            world,
            over: watch::Sender::new(None),
            changed: watch::Sender::new(0),
            superseded: watch::Sender::new(false),
            state: Mutex::new(State {
                alive: Some(alive),
                executed: 0,
                cancelled: 0,
                running: 0,
                closes: 0,
                lists: Vec::new(),
                pings: 0,
            }),
        }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Its process dies.
    pub(crate) fn crash(&self) {
        self.lose(Lost::new("the server ended"));
    }

    pub(crate) fn lose(&self, lost: Lost) {
        self.end(Over::Lost(lost));
        self.dead();
    }

    /// Takes no new calls; those on it go on. It counts as gone, so that another may be
    /// made beside it.
    pub(crate) fn expire(&self) {
        self.superseded.send_replace(true);
        self.dead();
    }

    /// Says that its list of tools changed.
    pub(crate) fn change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state().alive.is_some()
    }

    pub(crate) fn executed(&self) -> usize {
        self.state().executed
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.state().cancelled
    }

    /// How often it was closed.
    pub(crate) fn closes(&self) -> usize {
        self.state().closes
    }

    /// When its tools were listed.
    pub(crate) fn lists(&self) -> Vec<Instant> {
        self.state().lists.clone()
    }

    pub(crate) fn pings(&self) -> usize {
        self.state().pings
    }

    pub(crate) fn was_killed(&self) -> bool {
        *self.over.borrow() == Some(Over::Killed)
    }

    fn end(&self, how: Over) {
        self.over.send_if_modified(|over| {
            let worse = over.is_none() || how == Over::Killed;
            if worse {
                *over = Some(how);
            }
            worse
        });
    }

    fn dead(&self) {
        let alive = self.state().alive.take();
        drop(alive);
    }

    async fn over(&self) -> Over {
        let mut over = self.over.subscribe();
        let seen = over.wait_for(Option::is_some).await;
        let seen = seen.expect("the sender is here");
        seen.clone().expect("it was waited for")
    }

    async fn until_over<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        let deaf = self.world.of(&self.server).deaf;
        tokio::select! {
            biased;
            over = self.over(), if !deaf => Err(over),
            done = work => Ok(done),
        }
    }

    async fn execute(&self, call: ToolCall, flight: Flight) -> Result<CallToolResult, Failure> {
        let gone = |class| Failure::new(class).with_source(Lost::new("the server ended"));
        let plan = self.world.of(&self.server);
        if self.over.borrow().is_some() || plan.stuck {
            self.over().await;
            if plan.deaf {
                std::future::pending::<()>().await;
            }
            let class = if flight.withdraw() {
                Class::NotSent
            } else {
                Class::Unknown
            };
            return Err(gone(class));
        }
        if !flight.sending() {
            return Err(gone(Class::NotSent));
        }
        let mut running = Running::new(self);
        self.state().executed += 1;
        let argument = |name| {
            call.arguments()
                .and_then(|arguments| arguments.get(name)?.as_u64())
        };
        if let Some(tag) = argument("tag") {
            self.world.execute(tag);
        }
        let ms = argument("ms").unwrap_or(0);
        let worked = self
            .until_over(time::sleep(Duration::from_millis(ms)))
            .await;
        running.1 = true;
        match worked {
            Ok(()) => {
                flight.answered();
                let text = format!("{}: {}", self.number, call.tool());
                Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
            }
            Err(_) => Err(gone(Class::Unknown)),
        }
    }

    async fn list(&self) -> Result<Vec<Tool>, Failure> {
        let plan = self.world.of(&self.server);
        let again = {
            let lists = &mut self.state().lists;
            lists.push(Instant::now());
            lists.len() > 1
        };
        if plan.mute && again {
            return std::future::pending().await;
        }
        let listing = self.world.next_listing(&self.server);
        if let Listing::Dies = listing {
            self.crash();
        }
        // Answered even if the connection is over: nobody may make anything of that.
        time::sleep(plan.list).await;
        match listing {
            Listing::Tools(names) => Ok(names.into_iter().map(tool).collect()),
            Listing::Dies => Ok(vec![tool("w")]),
            Listing::Garbled => Err(Failure::new(Class::Unknown).with_source("no list")),
            Listing::Fails => Err(Failure::new(Class::Answered).with_source("cannot list")),
            Listing::Hangs => std::future::pending().await,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics under it")
    }
}

impl Link for FakeLink {
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>> {
        let call = call.clone();
        async move { Ok(self.execute(call, flight).await?.into()) }.boxed()
    }

    fn list_tools(
        self: Arc<Self>,
    ) -> BoxFuture<'static, Result<steadfast_pool::Listing<Tool>, Failure>> {
        async move { self.list().await.map(Into::into) }.boxed()
    }

    fn list_prompts(
        self: Arc<Self>,
    ) -> BoxFuture<'static, Result<steadfast_pool::Listing<Prompt>, Failure>> {
        let prompts = ["ask", "tell"].map(|name| Prompt::new(name, None::<String>, None));
        async move { Ok(prompts.to_vec().into()) }.boxed()
    }

    fn list_resources(
        self: Arc<Self>,
    ) -> BoxFuture<'static, Result<steadfast_pool::Listing<Resource>, Failure>> {
        async move { Ok(vec![Resource::new("file:///w", "w")].into()) }.boxed()
    }

    fn get_prompt(
        self: Arc<Self>,
        _params: GetPromptRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<GetPromptResult, Failure>> {
        async move {
            assert!(flight.sending());
            Ok(GetPromptResult::new(Vec::new()))
        }
        .boxed()
    }

    fn read_resource(
        self: Arc<Self>,
        params: ReadResourceRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<ReadResourceResult, Failure>> {
        async move {
            assert!(flight.sending());
            if params.uri == "file:///never" {
                std::future::pending::<()>().await;
            }
            Ok(ReadResourceResult::new(Vec::new()))
        }
        .boxed()
    }

    fn ping(self: Arc<Self>) -> BoxFuture<'static, Result<(), Failure>> {
        async move {
            self.state().pings += 1;
            if self.world.of(&self.server).mute {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
        .boxed()
    }

    fn announces_tools(&self) -> bool {
        self.world.of(&self.server).announces
    }

    fn tools_changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost> {
        async move {
            let mut superseded = self.superseded.subscribe();
            tokio::select! {
                over = self.over() => match over {
                    Over::Lost(lost) => lost,
                    Over::Closing | Over::Killed => Lost::new("we closed it"),
                },
                _ = superseded.wait_for(|superseded| *superseded) => {
                    Lost::superseded("the session expired")
                }
            }
        }
        .boxed()
    }

    fn close(self: Arc<Self>, limit: Duration) -> BoxFuture<'static, Closed> {
        async move {
            self.state().closes += 1;
            self.end(Over::Closing);
            let plan = self.world.of(&self.server);
            if plan.close_hangs {
                std::future::pending::<()>().await;
            }
            time::sleep(plan.close.min(limit)).await;
            self.dead();
            let mut closed = Closed::clean();
            closed.killed = plan.close > limit;
            closed
        }
        .boxed()
    }

    fn kill(&self) {
        self.end(Over::Killed);
        self.dead();
    }

    fn pid(&self) -> Option<u32> {
        u32::try_from(self.number).ok()
    }
}

// === impl Running ===

impl<'a> Running<'a> {
    fn new(link: &'a FakeLink) -> Self {
        link.state().running += 1;
        Self(link, false)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.cancelled += usize::from(!self.1);
    }
}

fn tool(name: &str) -> Tool {
    use rmcp::model::ToolAnnotations;

    let annotations = match name {
        "r" => ToolAnnotations::new().read_only(true),
        "i" => ToolAnnotations::new().idempotent(true),
        _ => ToolAnnotations::new(),
    };
    Tool::new(name.to_owned(), "", serde_json::Map::new()).with_annotations(annotations)
}
