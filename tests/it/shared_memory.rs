//! What sharing saves: processes and memory of 30 sessions with four servers each.

use std::fs;

use futures::future::join_all;
use serde_json::{Value, json};
use steadfast::{Lease, Pool, ServerConfig, Session, pool::process::Grace};

use crate::{
    ALONE,
    support::{Stage, pool_settings, secs, until},
    usage::children,
};

const SESSIONS: usize = 30;
const SERVERS: [&str; 4] = ["files", "search", "shop", "time"];

/// What one way of serving all sessions takes.
#[derive(Debug)]
struct Cost {
    servers: usize,
    /// Host and servers, in KiB; memory that several share is divided among them.
    memory: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_sessions_share_four_processes_and_their_memory() {
    let _alone = ALONE.lock().await;

    let shared = cost(true).await;
    let own = cost(false).await;

    let ratio = own.memory as f64 / shared.memory as f64;
    println!("30 sessions x 4 servers: {shared:?} shared, {own:?} each its own: {ratio:.1} x");
    assert_eq!(shared.servers, SERVERS.len());
    assert_eq!(own.servers, SERVERS.len() * SESSIONS);
    assert!(ratio > 3.0, "sharing hardly saves memory: {ratio}");
}

async fn cost(shared: bool) -> Cost {
    let stage = Stage::enter().await;
    // A hundred servers that end at once on two cores need more than a moment.
    let patient = Grace::new(secs(10), secs(5), secs(5));
    let pool = Pool::new(pool_settings().with_closing(patient)).unwrap();
    let configs = SERVERS.map(|name| config(&stage, name, shared));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|n| pool.session(format!("s{n}")))
        .collect();

    let leases = join_all(sessions.iter().map(|session| all(session, &configs))).await;

    // The watchdog counts too.
    let mut processes = children();
    processes.push(std::process::id());
    let cost = Cost {
        servers: pool.snapshot().subprocess_count,
        memory: processes.iter().map(|pid| proportional(*pid)).sum(),
    };
    assert_eq!(stage.started().len(), cost.servers);
    drop((leases, sessions));
    let drained = pool.drain_all(secs(30)).await;
    assert_eq!(drained.forced, [], "after {:?}", drained.took);
    println!("{} servers ended in {:.1?}", drained.drained, drained.took);
    stage.ended(pool).await;
    assert!(until(|| children().is_empty()).await, "{:?}", children());
    cost
}

async fn all(session: &Session, configs: &[ServerConfig]) -> Vec<Lease> {
    let leases = session.acquire_all(configs).await.into_iter();
    leases.map(|(_, lease)| lease.unwrap()).collect()
}

fn config(stage: &Stage, name: &str, shared: bool) -> ServerConfig {
    let fields: Value = json!({"env": {"NAME": name}, "steadfast": {"shared": shared}});
    stage.server_with(&json!({}), fields)
}

/// The proportional set size of a process in KiB.
fn proportional(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse().ok()).expect("a size")
}
