//! Tools that work for long, beside ordinary calls with ordinary limits, on one connection.
//!
//! ```text
//! cargo run --example long_task
//! ```
//!
//! Nothing to install or to start: the example runs itself again as the server. Times are
//! shortened: an ordinary call may be silent for 1 s here, 60 s by default.

use std::{error::Error, path::Path, time::Duration};

use serde_json::{Value, json};
use steadfast::{
    ConfigFile, Lease, Pool, PoolSettings, ServerConfig, Stack, fallback,
    pool::{PoolEvent, Respawn},
    stack::ToolStackService,
    timeout,
};
use steadfast_tests::probe::{self, Knobs, Ledger};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _};

type BoxResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Makes calls, and says when what became of them.
#[derive(Clone)]
struct Agent {
    lease: Lease,
    service: ToolStackService<Lease>,
    begun: Instant,
}

fn main() -> BoxResult<()> {
    // The server: this program, started again by the pool.
    probe::serve_if_child();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> BoxResult<()> {
    let dir = std::env::temp_dir().join(format!("steadfast-long-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let respawn = Respawn::new([Duration::from_millis(100); 3], Duration::from_millis(500));
    let pool = Pool::new(PoolSettings::default().with_respawn_local(respawn))?;
    let session = pool.session("agent");
    let limits = timeout::Settings::new()
        .with_connect(Duration::from_secs(1))
        .with_read(Duration::from_secs(1));
    let stack = Stack::tools()
        .with_timeout(limits)
        .with_last_good(fallback::Settings::new().with_explicit(true))?
        .build()?;
    let lease = session.acquire(&server(&dir)?).await?;
    let agent = Agent {
        service: stack.layer(lease.clone()),
        lease,
        begun: Instant::now(),
    };
    let watch = tokio::spawn(watch(pool.clone(), agent.clone()));
    day(&agent).await?;
    watch.abort();
    pool.drain_all(Duration::from_secs(5)).await;
    println!("\nexecuted, by the server's own ledger:");
    let ledger = Ledger::new(dir.join("ledger"));
    for tag in ["report", "price", "stuck", "build"] {
        println!("  {tag:<7} {}", ledger.count_tag(tag)?);
    }
    Ok(std::fs::remove_dir_all(&dir)?)
}

/// What happens: each long call has ordinary ones beside it.
async fn day(agent: &Agent) -> BoxResult<()> {
    agent.say("report: works for 3 s and reports progress; long by the configuration");
    let progress = json!({"delay_ms": 3_000, "progress": {"every_ms": 700}});
    let report = tokio::spawn(agent.clone().call("report", "w", progress));
    sleep(Duration::from_millis(500)).await;
    agent.clone().call("price", "r", json!({})).await?;
    agent
        .clone()
        .call("stuck", "r", json!({"stall": true}))
        .await?;
    report.await??;

    agent.say("build: a task of 3 s, whose server exits in the middle of it");
    let task = json!({"work_ms": 3_000, "interval_ms": 500, "exit_at_poll": 2});
    let build = tokio::spawn(agent.clone().call("build", "w", json!({"task": task})));
    sleep(Duration::from_millis(2_000)).await;
    agent.clone().call("price", "r", json!({})).await?;
    build.await?
}

/// `w` is long: it may take what its caller allows, must show a sign of life once a minute,
/// and is never started a second time. `r` is an ordinary tool.
fn server(dir: &Path) -> BoxResult<ServerConfig> {
    let knobs = Knobs {
        ledger: Some(dir.join("ledger")),
        state: Some(dir.join("state")),
        ..Knobs::default()
    };
    let mut entry = knobs.server_json(&std::env::current_exe()?);
    entry["steadfast"] = json!({"tools": {"w": {"long": true}}});
    let file = json!({"mcpServers": {"shop": entry}});
    let servers = ConfigFile::parse(&file.to_string()).into_servers()?;
    servers.into_iter().next().ok_or_else(|| "no server".into())
}

async fn watch(pool: Pool, agent: Agent) {
    let mut events = pool.events();
    while let Ok(event) = events.recv().await {
        match event {
            PoolEvent::Failed { .. } => agent.say("(the server is gone)"),
            PoolEvent::Connected { .. } => agent.say("(the server is back)"),
            _ => {}
        }
    }
}

// === impl Agent ===

impl Agent {
    fn say(&self, what: &str) {
        println!("{:>5.1} s  {what}", self.begun.elapsed().as_secs_f32());
    }

    async fn call(self, tag: &'static str, tool: &'static str, arguments: Value) -> BoxResult<()> {
        let mut arguments: serde_json::Map<_, _> = serde_json::from_value(arguments)?;
        arguments.insert("tag".into(), tag.into());
        let call = self.lease.tool(tool).with_arguments(arguments);
        let (call, mut progress) = call.with_progress();
        let agent = self.clone();
        let told = tokio::spawn(async move {
            while let Some(step) = progress.next().await {
                let number = step.progress.map(|number| format!("step {number}"));
                let words = number.or(step.message).unwrap_or_default();
                agent.say(&format!("{tag}: {words}"));
            }
        });
        let outcome = self.service.clone().oneshot(call).await;
        // The stream ends with its call.
        told.await?;
        match outcome {
            Ok(_) => self.say(&format!("{tag}: done")),
            Err(failure) => self.say(&format!("{tag}: {failure}")),
        }
        Ok(())
    }
}
