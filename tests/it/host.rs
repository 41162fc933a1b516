//! A host that dies in a way that it cannot handle: this test binary, started again.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use steadfast::{Pool, ServerConfig};
use steadfast_tests::probe::KNOBS_ENV;
use tokio::{task::spawn_blocking, time::sleep};

use crate::{
    left_behind::wrapped,
    support::{Agent, Stage, quick, secs, signal, until},
};

/// The moment at which the host says that it can be killed, if this is set.
const MOMENT: &str = "STEADFAST_TEST_MOMENT";

/// The server's entry in a configuration.
const ENTRY: &str = "STEADFAST_TEST_ENTRY";

/// A host of its own.
pub(crate) struct Host(Child);

// === impl Host ===

impl Host {
    /// Starts it, and returns when it has come to this moment.
    pub(crate) async fn start(stage: &Stage, moment: &str, knobs: &Value, beside: &str) -> Self {
        let entry = wrapped(stage, knobs, beside);
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", "host::plays_the_host", "--ignored", "--nocapture"])
            .env(MOMENT, moment)
            .env(ENTRY, entry_of(stage, knobs, &entry))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut host = Self(command.spawn().unwrap());
        let output = BufReader::new(host.0.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        let told = spawn_blocking(move || lines.any(|line| line == "kill me"));
        assert!(told.await.unwrap(), "the host failed; see its output");
        host
    }

    pub(crate) fn is_killed(&self) {
        signal(self.0.id(), rustix::process::Signal::KILL);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
