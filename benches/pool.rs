//! What a pool costs, and what it saves.
//!
//! ```text
//! cargo bench --bench pool
//! ```
//!
//! First what it does without servers: attaching, releasing, looking, ten thousand sessions
//! on one entry. Then 64 sessions with 200 calls each on real servers, which are this
//! program: through a pool and all layers, through bare `rmcp` on one connection, and through
//! bare `rmcp` with a server for each session, by turns. It takes about half a minute.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and its set-up cannot fail"
)]

#[path = "pool/calls.rs"]
mod calls;
#[path = "pool/sessions.rs"]
mod sessions;

use std::{fs, time::Duration};

use steadfast_tests::probe;

fn main() {
    // A server: this program, started again.
    probe::serve_if_child();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        sessions::run().await;
        calls::run().await;
    });
}

/// Kilobytes of memory that a process has now, and had at most.
fn memory(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    (of("VmRSS:"), of("VmHWM:"))
}

fn own_memory() -> u64 {
    memory(std::process::id()).0
}

/// The processor time that this process has used, all of its threads together.
fn own_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything: user and system time are fields 12 and 13.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.filter_map(|ticks| ticks.parse::<u64>().ok());
    // A hundred a second on every Linux.
    Duration::from_millis(10 * ticks.sum::<u64>())
}
