//! A server in memory that answers as its tool is named.

use std::{sync::Arc, time::Duration};

use futures::future::{self, BoxFuture, FutureExt as _};
use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, DetailedTask,
        GetPromptRequestParams, GetPromptResult, GetTaskParams, Prompt, ReadResourceRequestParams,
        ReadResourceResult, Task, TaskPayload, TaskStatus, Tool,
    },
};
use steadfast_classify::{Class, Failure, Flight, mcp::server_failure};
use steadfast_pool::{
    Closed, Connect, Host, Lease, Link, Listing, Lost, Pool, PoolSettings, ServerConfig, Session,
    ToolCall,
};
use tokio::time::Instant;

/// What must not be found in any span.
pub(crate) const SECRET: &str = "canary";

#[derive(Debug)]
struct Server;

/// A lease of a server of this name, and what must outlive it.
pub(crate) async fn lease(name: &str) -> ((Pool, Session), Lease) {
    let pool = Pool::with_connector(PoolSettings::default(), Server).expect("good settings");
    let config = ServerConfig::stdio(name, "fake").arg(SECRET).build();
    let session = pool.session("s");
    let lease = session.acquire(&config.expect("a good one")).await;
    ((pool, session), lease.expect("it starts"))
}

pub(crate) fn call(lease: &Lease, tool: &str) -> ToolCall {
    let arguments = serde_json::Map::from_iter([("password".to_owned(), SECRET.into())]);
    lease.tool(tool).with_arguments(arguments)
}

fn task() -> Task {
    Task::new(SECRET, TaskStatus::Working, "", "")
}

async fn answer(tool: Arc<str>, flight: Flight) -> Result<CallToolResponse, Failure> {
    if &*tool == "queued" {
        future::pending::<()>().await;
    }
    assert!(flight.sending());
    let text = vec![ContentBlock::text(SECRET)];
    match &*tool {
        "begins" => Ok(CreateTaskResult::new(task()).into()),
        "fails" => Ok(CallToolResult::error(text).into()),
        "refuses" => Err(server_failure(ErrorData::internal_error(SECRET, None), &[])),
        "breaks" => Err(Failure::new(Class::Unknown).with_source("the server ended")),
        "hangs" => future::pending().await,
        _ => {
            flight.answered();
            Ok(CallToolResult::success(text).into())
        }
    }
}

impl Connect for Server {
    fn connect(
        &self,
        _: &ServerConfig,
        _: Instant,
        _: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        future::ok(Arc::new(Self) as Arc<dyn Link>).boxed()
    }
}

impl Link for Server {
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>> {
        answer(Arc::clone(call.tool()), flight).boxed()
    }

    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Tool>, Failure>> {
        let names = [
            "works", "begins", "fails", "refuses", "breaks", "hangs", "queued",
        ];
        let tools = names.map(|name| Tool::new(name, "", serde_json::Map::new()));
        future::ok(tools.to_vec().into()).boxed()
    }

    fn list_prompts(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Prompt>, Failure>> {
        let prompts = vec![Prompt::new("greet", None::<String>, None)];
        future::ok(prompts.into()).boxed()
    }

    fn get_prompt(
        self: Arc<Self>,
        _: GetPromptRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<GetPromptResult, Failure>> {
        assert!(flight.sending());
        future::ok(GetPromptResult::new(Vec::new()).with_description(SECRET)).boxed()
    }

    fn read_resource(
        self: Arc<Self>,
        _: ReadResourceRequestParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<ReadResourceResult, Failure>> {
        assert!(flight.sending());
        future::ok(ReadResourceResult::new(Vec::new())).boxed()
    }

    fn get_task(
        self: Arc<Self>,
        _: GetTaskParams,
        flight: Flight,
    ) -> BoxFuture<'static, Result<DetailedTask, Failure>> {
        assert!(flight.sending());
        let result = serde_json::from_value(serde_json::json!({"content": []}));
        let payload = TaskPayload::Completed {
            result: result.expect("an object"),
        };
        future::ok(DetailedTask::new(task(), payload)).boxed()
    }

    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost> {
        future::pending().boxed()
    }

    fn close(self: Arc<Self>, _: Duration) -> BoxFuture<'static, Closed> {
        future::ready(Closed::clean()).boxed()
    }
}
