//! A server over HTTP that behaves as a test wants, and what a test needs around it.

mod reply;
mod server;

use std::time::Duration;

use rmcp::model::CallToolResult;
use serde_json::json;
use steadfast_classify::{Effect, Failure};
use steadfast_pool::{AnyConnect, HttpConnect, Lease, Pool, PoolSettings, ServerConfig, ToolCall};
use tokio::time::timeout;
use tower::ServiceExt as _;

pub(crate) use reply::{Reply, Step, answer};
pub(crate) use server::{Seen, Server, tools};

/// What is meant by soon, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(3);

/// Whatever `work` waits for, it is to come soon.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(SOON, work).await.expect("it takes too long")
}

/// A pool that does not pause before it gets a lost connection back.
pub(crate) fn pool() -> Pool {
    pool_with(HttpConnect::new())
}

pub(crate) fn pool_with(http: HttpConnect) -> Pool {
    let settings = PoolSettings::default();
    let connect = AnyConnect::new(settings.closing).with_http(http);
    Pool::with_connector(settings, connect).expect("sensible settings")
}

pub(crate) fn config(server: &Server) -> ServerConfig {
    let config = ServerConfig::http("s", server.url());
    config.build().expect("a good configuration")
}

/// A lease on a server of this configuration, whose first lists are there.
pub(crate) async fn acquired(pool: &Pool, config: &ServerConfig) -> Lease {
    let session = pool.session("a");
    let lease = soon(session.acquire(config)).await.expect("a connection");
    // It outlives its session's handle.
    std::mem::forget(session);
    lease
}

/// Calls `tool`, which is one that may not be repeated.
pub(crate) async fn call(lease: &Lease, tool: &str) -> Result<CallToolResult, Failure> {
    let call = ToolCall::new(tool).with_effect(Effect::NonIdempotent);
    soon(lease.clone().oneshot(call)).await
}

/// The text of a result.
pub(crate) fn text(result: &CallToolResult) -> String {
    let content = json!(result.content);
    content[0]["text"].as_str().unwrap_or_default().to_owned()
}
