//! Calls on real servers: through a pool and all layers, and through bare `rmcp`.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::json;
use steadfast::{
    ConfigFile, Lease, Pool, PoolSettings, ServerConfig, Stack,
    rmcp::{
        Peer, RoleClient, ServiceExt as _,
        model::{CallToolRequestParams, JsonObject},
        service::RunningService,
    },
    stack::ToolStackService,
};
use steadfast_tests::probe::Knobs;
use tokio::process::{Child, Command};
use tower::{Layer as _, ServiceExt as _};

use crate::{memory, own_memory, own_time};

const SESSIONS: usize = 64;
const CALLS: usize = 200;
const ROUNDS: usize = 7;

/// One way to make the calls, in one round.
struct Round {
    took: Duration,
    /// Processor time of the host.
    time: Duration,
    /// Of each call, sorted.
    latencies: Vec<Duration>,
    /// Kilobytes of the host at its end.
    host: u64,
    /// Kilobytes of all servers together.
    servers: u64,
}

pub(crate) async fn run() {
    println!("{SESSIONS} sessions with {CALLS} calls each, the best of {ROUNDS} rounds by turns:");
    let (mut pooled, mut bare, mut own) = (Vec::new(), Vec::new(), Vec::new());
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        pooled.push(through_the_pool(true).await);
        alone.push(through_the_pool(false).await);
        bare.push(one_connection().await);
        own.push(one_each().await);
    }
    let bare = report("bare rmcp, one connection", bare);
    let pooled = report("a pool and all layers", pooled);
    report("a pool alone", alone);
    report("bare rmcp, a server each", own);
    println!(
        "with everything on: {:.0} % of bare rmcp's calls   (aim: at least 90 %)",
        100.0 * pooled / bare
    );
}

/// Prints the best round; returns its calls per second.
fn report(way: &str, rounds: Vec<Round>) -> f64 {
    let host = rounds.iter().map(|round| round.host).min().unwrap();
    let time = rounds.iter().map(|round| round.time).min().unwrap();
    let best = rounds.into_iter().min_by_key(|round| round.took).unwrap();
    let calls = best.latencies.len();
    let rate = calls as f64 / best.took.as_secs_f64();
    let percentile = |share: f64| best.latencies[((calls - 1) as f64 * share) as usize];
    println!(
        "{way:<26} {rate:>7.0} calls/s   p50 {:>8.1?}   p99 {:>8.1?}   host {:>5.1} µs a call, \
         {:>5.1} MB   servers {:>6.1} MB",
        percentile(0.5),
        percentile(0.99),
        time.as_micros() as f64 / calls as f64,
        host as f64 / 1024.0,
        best.servers as f64 / 1024.0,
    );
    rate
}

async fn through_the_pool(layers: bool) -> Round {
    let pool = Pool::new(PoolSettings::default()).unwrap();
    let config = config();
    let layer = Stack::tools().build().unwrap();
    let sessions: Vec<_> = (0..SESSIONS).map(|n| pool.session(n.to_string())).collect();
    let mut callers = Vec::new();
    for session in &sessions {
        let lease = session.acquire(&config).await.unwrap();
        let stack = layers.then(|| layer.layer(lease.clone()));
        callers.push(Agent { lease, stack });
    }
    let entry = pool.snapshot().servers["echo"].entry_summary[0].clone();
    let round = measure(callers, &[entry.pid.unwrap()]).await;
    pool.drain_all(Duration::from_secs(5)).await;
    round
}

async fn one_connection() -> Round {
    let (mut child, service) = connect().await;
    let callers = (0..SESSIONS).map(|_| Bare(service.peer().clone()));
    let round = measure(callers.collect(), &[child.id().unwrap()]).await;
    drop(service);
    child.kill().await.unwrap();
    round
}

async fn one_each() -> Round {
    let connections = join_all((0..SESSIONS).map(|_| connect())).await;
    let callers = connections
        .iter()
        .map(|(_, service)| Bare(service.peer().clone()));
    let pids: Vec<_> = connections
        .iter()
        .filter_map(|(child, _)| child.id())
        .collect();
    let round = measure(callers.collect(), &pids).await;
    for (mut child, service) in connections {
        drop(service);
        child.kill().await.unwrap();
    }
    round
}

trait Caller: Send + Sync + 'static {
    fn call(&self, n: usize) -> impl Future<Output = ()> + Send;
}

struct Bare(Peer<RoleClient>);

impl Caller for Bare {
    async fn call(&self, n: usize) {
        let params = CallToolRequestParams::new("w").with_arguments(arguments(n));
        let answer = self.0.call_tool(params).await.unwrap();
        assert!(!answer.content.is_empty());
    }
}

struct Agent {
    lease: Lease,
    stack: Option<ToolStackService<Lease>>,
}

impl Caller for Agent {
    async fn call(&self, n: usize) {
        let call = self.lease.tool("w").with_arguments(arguments(n));
        match &self.stack {
            Some(stack) => assert!(stack.clone().oneshot(call).await.unwrap().is_live()),
            None => drop(self.lease.clone().oneshot(call).await.unwrap()),
        }
    }
}

/// All callers at once, each with one call after the other.
async fn measure<C: Caller>(callers: Vec<C>, servers: &[u32]) -> Round {
    let (begun, time) = (Instant::now(), own_time());
    let callers = callers.into_iter().map(|caller| {
        tokio::spawn(async move {
            let mut latencies = Vec::with_capacity(CALLS);
            for n in 0..CALLS {
                let begun = Instant::now();
                caller.call(n).await;
                latencies.push(begun.elapsed());
            }
            latencies
        })
    });
    let latencies = join_all(callers.collect::<Vec<_>>()).await;
    let took = begun.elapsed();
    let mut latencies: Vec<_> = latencies.into_iter().flat_map(Result::unwrap).collect();
    latencies.sort_unstable();
    Round {
        took,
        time: own_time().saturating_sub(time),
        latencies,
        host: own_memory(),
        servers: servers.iter().map(|pid| memory(*pid).0).sum(),
    }
}

fn arguments(n: usize) -> JsonObject {
    JsonObject::from_iter([("echo".to_owned(), n.into())])
}

/// The server of the pool.
fn config() -> ServerConfig {
    let exe = std::env::current_exe().unwrap();
    let file = json!({ "mcpServers": { "echo": Knobs::default().server_json(&exe) } });
    let mut servers = ConfigFile::parse(&file.to_string()).into_servers().unwrap();
    servers.remove(0)
}

/// The same server without a pool.
async fn connect() -> (Child, RunningService<RoleClient, ()>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("--probe")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let streams = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let service = ().serve(streams).await.unwrap();
    (child, service)
}
