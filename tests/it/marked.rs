//! Every process of a test, told by its environment, which children inherit.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Stage, ms};

/// All processes that know of one stage's ledger: servers, the shells around them, and
/// whatever these started. Not the host, and not a watchdog.
pub(crate) struct Marked(String);

// === impl Marked ===

impl Marked {
    pub(crate) fn new(stage: &Stage) -> Self {
        Self(stage.path("ledger").display().to_string())
    }

    /// Those that run. A dead one has no environment any more.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("there is a /proc");
        let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_in(*pid)).collect()
    }

    /// Waits until none runs, for so long at most.
    pub(crate) async fn gone_within(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.alive().is_empty() && Instant::now() < end {
            sleep(ms(20)).await;
        }
    }

    fn is_in(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mark = self.0.as_bytes();
        environment.windows(mark.len()).any(|part| part == mark)
    }
}

/// The entry of a probe behind a shell that stays, as `npx` does, and of what that shell
/// starts beside it.
pub(crate) fn wrapped(stage: &Stage, knobs: &Value, beside: &str) -> Value {
    let probe = env!("CARGO_BIN_EXE_probe");
    let mut entry = stage.knobs(knobs).server_json(probe.as_ref());
    let script = format!("{beside} \"$0\" --probe; exit $?");
    entry["command"] = json!("sh");
    entry["args"] = json!(["-c", script, probe]);
    entry
}
