//! In-memory servers for a pool, on a paused clock.

mod link;
#[cfg(feature = "metrics")]
mod numbers;
mod world;

use std::{future::Future, time::Duration};

use rmcp::model::{CallToolResult, JsonObject};
use steadfast_classify::{Class, Failure};
use steadfast_pool::{
    EntrySnapshot, Lease, Pool, PoolEvent, PoolSettings, ServerConfig, SlotMode, Status, ToolCall,
};
use tokio::{sync::broadcast, task::JoinHandle, time};
use tower::ServiceExt as _;

pub(crate) use link::FakeLink;
#[cfg(feature = "metrics")]
pub(crate) use numbers::Numbers;
pub(crate) use world::{Connecting, Listing, World};

/// Long enough for every task to do what it can do without time passing.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets everything happen that can happen now. The clock is paused, so it only moves on
/// once every task waits.
pub(crate) async fn settle() {
    time::sleep(MOMENT).await;
}

pub(crate) fn pool() -> (Pool, World) {
    pool_with(PoolSettings::default())
}

pub(crate) fn pool_with(settings: PoolSettings) -> (Pool, World) {
    let world = World::default();
    let pool = Pool::with_connector(settings, world.clone()).expect("sensible settings");
    (pool, world)
}

pub(crate) fn slots(limit: usize) -> PoolSettings {
    PoolSettings::default().with_slots(SlotMode::Enforce(limit))
}

/// A server that sessions share.
pub(crate) fn server(name: &str) -> ServerConfig {
    keyed(name, "0")
}

/// One of several servers of one name that have different keys.
pub(crate) fn keyed(name: &str, arg: &str) -> ServerConfig {
    let config = ServerConfig::stdio(name, "fake").arg(arg);
    config.build().expect("a good configuration")
}

/// A server of which each session has its own.
pub(crate) fn unpooled(name: &str) -> ServerConfig {
    let config = ServerConfig::http(name, "http://localhost/mcp");
    config.build().expect("a good configuration")
}

/// A call that the server takes `ms` for.
pub(crate) fn slow(lease: &Lease, ms: u64) -> ToolCall {
    let arguments = JsonObject::from_iter([("ms".to_owned(), ms.into())]);
    lease.tool("w").with_arguments(arguments)
}

pub(crate) async fn call(lease: &Lease) -> Result<CallToolResult, Failure> {
    lease.clone().oneshot(lease.tool("w")).await
}

/// Makes a call that runs by itself.
pub(crate) fn spawn_call(
    lease: &Lease,
    call: ToolCall,
) -> JoinHandle<Result<CallToolResult, Failure>> {
    tokio::spawn(lease.clone().oneshot(call))
}

/// The one entry of a server.
pub(crate) fn entry(pool: &Pool, name: &str) -> EntrySnapshot {
    let snapshot = pool.snapshot();
    let server = snapshot.servers.get(name).expect("the server is known");
    assert_eq!(server.entry_count, 1, "{server:?}");
    server.entry_summary[0].clone()
}

pub(crate) fn status(pool: &Pool, name: &str) -> Option<Status> {
    let snapshot = pool.snapshot();
    let server = snapshot.servers.get(name)?;
    assert_eq!(server.entry_count, 1, "{server:?}");
    Some(server.entry_summary[0].status)
}

pub(crate) fn tools(lease: &Lease) -> Vec<String> {
    let view = lease.tools();
    view.tools
        .iter()
        .map(|tool| tool.name.to_string())
        .collect()
}

/// What was told since the last time.
pub(crate) fn told(events: &mut broadcast::Receiver<PoolEvent>) -> Vec<PoolEvent> {
    std::iter::from_fn(|| events.try_recv().ok()).collect()
}

/// The class of a failure.
#[track_caller]
pub(crate) fn refusal<T>(result: Result<T, Failure>) -> Class {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(failure) => failure.class(),
    }
}

/// How long `work` takes by the paused clock.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let begun = time::Instant::now();
    let result = work.await;
    (begun.elapsed(), result)
}
