//! A live table of what a pool holds, while sessions come and go and a server crashes.
//!
//! ```text
//! cargo run --example pool_status
//! ```
//!
//! Nothing to install or to start: the example runs itself again as each of its servers. On
//! a terminal the table stays in its place; elsewhere it is printed whenever it changes.

use std::{
    error::Error,
    io::{self, IsTerminal, Write as _},
    time::Duration,
};

use serde_json::json;
use steadfast::{
    ConfigFile, Lease, Pool, PoolSettings, ServerConfig,
    pool::{EntrySnapshot, PoolEvent, SlotMode},
    rmcp::object,
};
use steadfast_tests::probe::{self, Knobs, StartKnobs};
use tokio::{
    sync::broadcast::error::RecvError,
    time::{MissedTickBehavior, interval, sleep},
};
use tower::ServiceExt as _;

type BoxError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), BoxError> {
    // A server: this program, started again by the pool.
    probe::serve_if_child();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> Result<(), BoxError> {
    let settings = PoolSettings::default()
        // Short, so that the day is: by default it is 30 s.
        .with_grace(Duration::from_secs(2))
        .with_slots(SlotMode::Enforce(3));
    let pool = Pool::new(settings)?;
    let servers = servers()?;
    tokio::select! {
        day = day(&pool, servers.each_ref()) => day?,
        () = show(&pool) => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    let report = pool.drain_all(Duration::from_secs(5)).await;
    println!(
        "drained in {:.1?}: {} ended, {} had to be killed",
        report.took,
        report.drained,
        report.forced.len()
    );
    Ok(())
}

/// Two sessions, four servers, three slots.
async fn day(
    pool: &Pool,
    [files, search, flaky, extra]: [&ServerConfig; 4],
) -> Result<(), BoxError> {
    let alice = pool.session("alice");
    let (files_a, _search) = tokio::try_join!(alice.acquire(files), alice.acquire(search))?;
    let slow = tokio::spawn(call(files_a, json!({"delay_ms": 2_500})));
    pause().await;

    // Bob shares what Alice has, and brings a server of his own, which crashes.
    let bob = pool.session("bob");
    let (_files, flaky) = tokio::try_join!(bob.acquire(files), bob.acquire(flaky))?;
    pause().await;
    call(flaky.clone(), json!({"exit_after": 137})).await;
    pause().await;
    call(flaky.clone(), json!({})).await;

    // There is no fourth slot. That is an event, too.
    if bob.acquire(extra).await.is_ok() {
        return Err("a fourth server was started".into());
    }
    pause().await;

    // What nobody holds stays for its grace; what somebody holds can be restarted.
    drop(alice);
    slow.await?;
    pool.restart("files", None).await;
    pause().await;
    drop(bob);
    sleep(Duration::from_secs(3)).await;
    Ok(())
}

async fn call(lease: Lease, arguments: serde_json::Value) {
    let arguments = arguments
        .as_object()
        .cloned()
        .unwrap_or_else(|| object!({}));
    let call = lease.tool("w").with_arguments(arguments);
    // What became of it shows in the table.
    let _ = lease.oneshot(call).await;
}

async fn pause() {
    sleep(Duration::from_millis(1_500)).await;
}

/// Draws the table anew at each event, and several times a second.
async fn show(pool: &Pool) {
    let mut events = pool.events();
    let mut ticks = interval(Duration::from_millis(250));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut screen = Screen::default();
    let mut last = "nothing yet".to_owned();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            event = events.recv() => match event {
                Ok(event) => last = tell(&event),
                Err(RecvError::Lagged(missed)) => last = format!("missed {missed} events"),
                Err(RecvError::Closed) => return,
            },
        }
        // A closed terminal ends the example, not with a panic.
        if screen.draw(&table(pool, &last)).is_err() {
            return;
        }
    }
}

fn table(pool: &Pool, last: &str) -> Vec<String> {
    let snapshot = pool.snapshot();
    let mut lines = vec![format!(
        "{} connected, {} processes, {} slots taken; last: {last}",
        snapshot.total, snapshot.subprocess_count, snapshot.slots.used
    )];
    lines.push("server    entry  status      held  calls  restarts  closes in  last error".into());
    for (name, server) in &snapshot.servers {
        lines.extend(server.entry_summary.iter().map(|entry| row(name, entry)));
    }
    lines
}

fn row(name: &str, entry: &EntrySnapshot) -> String {
    let index = entry
        .entry_index
        .map_or("-".to_owned(), |index| index.to_string());
    let status = format!("{:?}", entry.status).to_lowercase();
    let closes_in = entry
        .closes_in
        .map_or("-".to_owned(), |left| format!("{} s", left.as_secs() + 1));
    let error = entry.last_error.as_deref().unwrap_or("-");
    format!(
        "{name:<9} {index:<6} {status:<11} {:<5} {:<6} {:<9} {closes_in:<10} {error:.60}",
        entry.refs, entry.in_flight, entry.restarts
    )
}

fn tell(event: &PoolEvent) -> String {
    match event {
        PoolEvent::Connected { server, took, .. } => format!("{server} connected in {took:.0?}"),
        PoolEvent::StartFailed {
            server, failure, ..
        } => {
            format!("{server} did not start: {failure}")
        }
        PoolEvent::Failed { server, lost, .. } => format!("{server} failed: {lost}"),
        PoolEvent::Detached { server, reason, .. } => {
            format!("{server} detached: {}", reason.as_str())
        }
        PoolEvent::Closed { server, closed, .. } => {
            format!("{server} is gone after {:.0?}", closed.took)
        }
        PoolEvent::SlotsWarning { held, limit, .. } => format!("{held} of {limit} slots taken"),
        PoolEvent::SlotsRefused { servers, .. } => format!("no slot for {}", servers.join(", ")),
        other => format!("{other:?}"),
    }
}

/// Where the table goes.
#[derive(Default)]
struct Screen {
    drawn: Vec<String>,
}

// === impl Screen ===

impl Screen {
    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        if self.drawn == lines {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        if out.is_terminal() && !self.drawn.is_empty() {
            // Up to where it began, and clear what is below.
            write!(out, "\x1b[{}A\x1b[J", self.drawn.len() + 1)?;
        }
        for line in lines {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        self.drawn = lines.to_vec();
        out.flush()
    }
}

fn servers() -> Result<[ServerConfig; 4], BoxError> {
    let exe = std::env::current_exe()?;
    let slow = Knobs {
        start: StartKnobs {
            delay_ms: 1_000,
            ..StartKnobs::default()
        },
        ..Knobs::default()
    };
    let server = |name: &str, knobs: &Knobs| -> Result<ServerConfig, BoxError> {
        let file = json!({ "mcpServers": { name: knobs.server_json(&exe) } });
        let mut servers = ConfigFile::parse(&file.to_string()).into_servers()?;
        Ok(servers.remove(0))
    };
    Ok([
        server("files", &Knobs::default())?,
        server("search", &slow)?,
        server("flaky", &Knobs::default())?,
        server("extra", &Knobs::default())?,
    ])
}
