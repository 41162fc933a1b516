//! A probe that serves HTTP in a process of its own.

use std::process::Stdio;

use serde_json::Value;
use steadfast_tests::probe::KNOBS_ENV;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::support::Stage;

/// Killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) url: String,
}

// === impl Process ===

impl Process {
    /// Starts it, and returns once it listens.
    pub(crate) async fn start(stage: &Stage, knobs: &Value) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_probe"))
            .arg("--probe")
            .env(KNOBS_ENV, stage.knobs(knobs).to_json().to_string())
            // Its end is the server's.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it can be started");
        let output = child.stdout.take().expect("it is a pipe");
        let mut url = String::new();
        let told = BufReader::new(output).read_line(&mut url).await;
        told.expect("it says where it is");
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let address = self.url.trim_end_matches("/mcp");
        let (_, port) = address.rsplit_once(':').expect("an address");
        port.parse().expect("a port")
    }

    /// Kills it; nothing of it is left when this returns.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("it is ours");
    }
}
