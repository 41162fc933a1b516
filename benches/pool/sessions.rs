//! What a pool does without servers, over connections in memory.

use std::{hint::black_box, sync::Arc, time::Duration, time::Instant};

use futures::future::{BoxFuture, FutureExt as _, pending, ready};
use steadfast::{
    Failure, Pool, PoolSettings, ServerConfig, ToolCall,
    pool::{Closed, Connect, Host, Link, Listing, Lost},
    rmcp::model::{CallToolResponse, CallToolResult, Tool},
};
use tower::ServiceExt as _;

use crate::own_memory;

const ROUNDS: u32 = 7;

/// Answers at once, with nothing.
#[derive(Debug)]
struct Nothing;

impl Connect for Nothing {
    fn connect(
        &self,
        _: &ServerConfig,
        _: tokio::time::Instant,
        _: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        ready(Ok(Arc::new(Self) as Arc<dyn Link>)).boxed()
    }
}

impl Link for Nothing {
    fn call(
        self: Arc<Self>,
        _: &ToolCall,
        flight: steadfast::classify::Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>> {
        let _ = flight.sending();
        flight.answered();
        ready(Ok(CallToolResult::default().into())).boxed()
    }

    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Tool>, Failure>> {
        let tools = vec![Tool::new("w", "", serde_json::Map::new())];
        ready(Ok(tools.into())).boxed()
    }

    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost> {
        pending().boxed()
    }

    fn close(self: Arc<Self>, _: Duration) -> BoxFuture<'static, Closed> {
        ready(Closed::clean()).boxed()
    }
}

pub(crate) async fn run() {
    // First, while this process has no memory that it used before.
    ten_thousand().await;
    attach_and_release().await;
    snapshot().await;
}

fn pool() -> Pool {
    Pool::with_connector(PoolSettings::default(), Nothing).unwrap()
}

fn server(name: &str) -> ServerConfig {
    ServerConfig::stdio(name, "none").build().unwrap()
}

/// The best of several rounds, in nanoseconds.
fn best(mut round: impl FnMut() -> Duration, times: u32) -> f64 {
    let rounds = (0..ROUNDS).map(|_| round().as_nanos() as f64 / f64::from(times));
    rounds.fold(f64::INFINITY, f64::min)
}

async fn attach_and_release() {
    const TIMES: u32 = 50_000;
    let pool = pool();
    let session = pool.session("s");
    let config = server("a");
    let _held = session.acquire(&config).await.unwrap();

    let mut leases = Vec::with_capacity(TIMES as usize);
    let attach = best(
        || {
            leases.clear();
            let begun = Instant::now();
            leases.extend((0..TIMES).map(|_| session.lease(&config).unwrap()));
            begun.elapsed()
        },
        TIMES,
    );
    let release = best(
        || {
            let mut leases: Vec<_> = (0..TIMES)
                .map(|_| session.lease(&config).unwrap())
                .collect();
            let begun = Instant::now();
            leases.clear();
            begun.elapsed()
        },
        TIMES,
    );
    println!("attach to a live entry   {attach:>8.0} ns   (aim: under 1000)");
    println!("release                  {release:>8.0} ns");
}

async fn snapshot() {
    const TIMES: u32 = 50;
    let pool = pool();
    let session = pool.session("s");
    let mut leases = Vec::new();
    for n in 0..1_000 {
        let config = server(&format!("server-{n}"));
        leases.push(session.acquire(&config).await.unwrap());
    }
    let taken = best(
        || {
            let begun = Instant::now();
            (0..TIMES).for_each(|_| drop(black_box(pool.snapshot())));
            begun.elapsed()
        },
        TIMES,
    );
    let micros = taken / 1_000.0;
    println!("snapshot, 1000 entries   {micros:>8.0} µs");
}

async fn ten_thousand() {
    const SESSIONS: u64 = 10_000;
    let pool = pool();
    let config = server("a");
    let before = own_memory();
    let begun = Instant::now();
    let mut held = Vec::new();
    for n in 0..SESSIONS {
        let session = pool.session(n.to_string());
        let lease = session.acquire(&config).await.unwrap();
        lease.clone().oneshot(lease.tool("w")).await.unwrap();
        held.push((session, lease));
    }
    let came = begun.elapsed();
    let memory = own_memory().saturating_sub(before);
    let begun = Instant::now();
    drop(held);
    let left = begun.elapsed();
    println!(
        "{SESSIONS} sessions on one entry: attached and called in {came:.1?}, left in {left:.1?}, \
         {} bytes each",
        memory * 1024 / SESSIONS
    );
}
