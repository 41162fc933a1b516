//! A short day of an agent whose server stalls, crashes and comes back.
//!
//! ```text
//! cargo run --example agent
//! ```
//!
//! Nothing to install or to start: the example runs itself again as the faulty server. Each
//! line of the table is one tool call through the whole stack; at the end, the server's own
//! ledger says how often each call was really executed.

use std::{
    collections::BTreeSet,
    error::Error,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use steadfast::{
    Call as _, ConfigFile, Failure, Lease, Pool, PoolSettings, ServerConfig, Session, Sourced,
    ToolCall,
    budget::{Global, Limit},
    circuit_breaker::{self, OpenFor},
    pool::Respawn,
    retry::{self, Backoff, Jitter},
    rmcp::model::CallToolResult,
    stack::{Stack, ToolStackLayer, by_server},
    timeout,
};
use steadfast_tests::probe::{self, Knobs, Ledger, ProcessKnobs};
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt, util::BoxCloneService};

type BoxError = Box<dyn Error + Send + Sync>;
type BoxResult = Result<(), BoxError>;

/// The stack of this agent. The delays are shortened so that the day is over in seconds; by
/// default it is connect 5 s, read 60 s, backoff from 0.5 s to 8 s, open for 30 s after 5
/// failures in a row.
fn stack() -> Result<ToolStackLayer, BoxError> {
    let limits = timeout::Settings::new()
        .with_connect(Duration::from_secs(1))
        .with_read(Duration::from_secs(1));
    let backoff = Backoff::new(
        Duration::from_millis(100),
        Duration::from_secs(1),
        Jitter::Additive(0.2),
    )?;
    let circuit = circuit_breaker::Settings::new()
        .with_consecutive_failures(3)
        .with_open_for(OpenFor::fixed(Duration::from_secs(2)));
    let allowance = Limit::new("the agent's allowance", "1/min burst 13".parse()?);
    let stack = Stack::tools()
        .with_timeout(limits)
        .with_total(Duration::from_secs(10))
        .with_retry(
            retry::Settings::new()
                .with_max_retries(2)
                .with_backoff(backoff),
        )
        .with_breaker_per("servers", circuit, by_server as fn(&ToolCall) -> Arc<str>)
        .with_admission(Global::new(allowance));
    Ok(stack.build()?)
}

/// The pool. By default a lost server is started again at once, then after 5 s three times,
/// then every 30 s.
fn pool() -> Result<Pool, BoxError> {
    let respawn = Respawn::new([Duration::from_millis(100); 3], Duration::from_millis(500));
    Ok(Pool::new(
        PoolSettings::default().with_respawn_local(respawn),
    )?)
}

fn main() -> BoxResult {
    // The faulty server: this program, started again by the pool.
    probe::serve_if_child();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> BoxResult {
    let dir = std::env::temp_dir().join(format!("steadfast-agent-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let pool = pool()?;
    let outage = dir.join("outage");
    let mut agent = Agent::new(&pool, &server(&dir)?, stack()?).await?;
    let outcome = tokio::select! {
        outcome = day(&mut agent, &outage) => outcome,
        () = asked_to_stop() => Err("stopped by a signal".into()),
    };
    let report = pool.drain_all(Duration::from_secs(5)).await;
    let books = agent.close_the_books(&dir);
    println!(
        "the pool was drained in {:.1?}, {} forced",
        report.took,
        report.forced.len()
    );
    std::fs::remove_dir_all(&dir)?;
    outcome.and(books)
}

/// What happens, one call after the other.
async fn day(agent: &mut Agent, outage: &Path) -> BoxResult {
    println!(
        "call        effect          the server    attempts  class     source        time  circuit"
    );
    agent.call("answers", "r", "price", json!({})).await?;
    agent.call("answers", "w", "order 1", json!({})).await?;
    agent.call("answers", "i", "stock", json!({})).await?;
    agent
        .call("stalls", "w", "order 2", json!({"stall": true}))
        .await?;
    let crash = json!({"exit_after": 137, "times": 1});
    agent.call("crashes once", "r", "report", crash).await?;
    let crash = json!({"exit_after": 137});
    agent.call("crashes", "w", "order 3", crash).await?;
    agent.call("answers", "r", "price", json!({})).await?;

    std::fs::write(outage, "")?;
    agent.call("is down", "r", "price", json!({})).await?;
    agent.call("is down", "r", "price", json!({})).await?;
    agent.call("is down", "w", "order 4", json!({})).await?;

    std::fs::remove_file(outage)?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    agent.call("is back", "r", "price", json!({})).await?;
    agent.call("answers", "w", "order 5", json!({})).await?;
    agent.call("answers", "r", "price", json!({})).await?;
    agent.call("not asked", "r", "price", json!({})).await?;
    agent.call("not asked", "w", "order 6", json!({})).await
}

/// The configuration of the faulty server. It is ours, so what it says of its tools is
/// believed (`trust`): `r` only reads, `i` may be repeated, `w` must not be.
fn server(dir: &Path) -> Result<ServerConfig, BoxError> {
    let knobs = Knobs {
        ledger: Some(dir.join("ledger")),
        state: Some(dir.join("state")),
        process: ProcessKnobs {
            outage: Some(dir.join("outage")),
            ..ProcessKnobs::default()
        },
        ..Knobs::default()
    };
    let mut entry = knobs.server_json(&std::env::current_exe()?);
    entry["trust"] = json!(true);
    let file = json!({"mcpServers": {"shop": entry}});
    let servers = ConfigFile::parse(&file.to_string()).into_servers()?;
    servers.into_iter().next().ok_or_else(|| "no server".into())
}

/// One agent session with its stack, and what it did.
struct Agent {
    stack: ToolStackLayer,
    service: BoxCloneService<ToolCall, Sourced<CallToolResult>, Failure>,
    session: Session,
    lease: Lease,
    /// How many attempts reached the lease.
    attempts: Arc<AtomicU32>,
    made: Vec<(String, u32)>,
}

// === impl Agent ===

impl Agent {
    async fn new(
        pool: &Pool,
        server: &ServerConfig,
        stack: ToolStackLayer,
    ) -> Result<Self, BoxError> {
        let session = pool.session("agent");
        // Waits for the server, so that what it says of its tools is known from the first call.
        let lease = session.acquire(server).await?;
        let attempts = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&attempts);
        let service = ServiceBuilder::new()
            .layer(stack.clone())
            .map_request(move |call| {
                count.fetch_add(1, Ordering::Relaxed);
                call
            })
            .service(lease.clone());
        Ok(Self {
            stack,
            service: BoxCloneService::new(service),
            session,
            lease,
            attempts,
            made: Vec::new(),
        })
    }

    /// Makes one call and prints its line. `fault` is what the server is told to do to it.
    async fn call(&mut self, server: &str, tool: &str, tag: &str, fault: Value) -> BoxResult {
        let mut arguments: Map<String, Value> = serde_json::from_value(fault)?;
        arguments.insert("tag".into(), tag.into());
        let call = self.lease.tool(tool).with_arguments(arguments);
        let effect = call.effect();
        self.attempts.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        let result = self.service.ready().await?.call(call).await;
        let took = begun.elapsed();
        let attempts = self.attempts.load(Ordering::Relaxed);
        let (class, source) = match &result {
            Ok(answer) => (
                answer
                    .cause
                    .as_ref()
                    .map_or("-", |cause| cause.class.as_str()),
                answer.source.as_str(),
            ),
            Err(failure) => (failure.class().as_str(), "failure"),
        };
        let circuit = self.circuit();
        println!(
            "{tool} {tag:<9} {effect:<15} {server:<13} {attempts:>8}  {class:<9} {source:<9} \
             {took:>8.1?}  {circuit}"
        );
        self.made.push((tag.to_owned(), attempts));
        Ok(())
    }

    fn circuit(&self) -> String {
        let breakers = self.stack.breakers();
        let circuit = breakers.and_then(|breakers| breakers.snapshot(self.lease.server()));
        circuit.map_or_else(|| "-".to_owned(), |circuit| format!("{:?}", circuit.state))
    }

    /// The ledger's counts beside the calls made.
    fn close_the_books(self, dir: &Path) -> BoxResult {
        let ledger = Ledger::new(dir.join("ledger"));
        println!(
            "\n{:<9} {:>5} {:>8} {:>8}",
            "call", "calls", "attempts", "executed"
        );
        let tags: BTreeSet<_> = self.made.iter().map(|(tag, _)| tag.as_str()).collect();
        for tag in tags {
            let calls = self.made.iter().filter(|(made, _)| made == tag);
            let (calls, attempts) = calls.fold((0, 0), |(n, sum), (_, a)| (n + 1, sum + a));
            let executed = ledger.count_tag(tag)?;
            println!("{tag:<9} {calls:>5} {attempts:>8} {executed:>8}");
            if tag.starts_with("order") && executed > 1 {
                return Err(format!("{tag} was executed {executed} times").into());
            }
        }
        let pids: BTreeSet<_> = ledger.entries()?.iter().map(|entry| entry.pid).collect();
        let left = pids.iter().filter(|pid| is_alive(**pid)).count();
        println!(
            "\n{} server processes were started and called, {left} are left",
            pids.len()
        );
        self.session.close();
        match left {
            0 => Ok(()),
            left => Err(format!("{left} server processes are left").into()),
        }
    }
}

/// Where there is no /proc, the pool's own report has to do.
fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

async fn asked_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupted => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = interrupted.await;
}
