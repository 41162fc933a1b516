//! A probe that listens: a process of its own, which can be killed and started again.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use steadfast_tests::probe::Knobs;

use super::PROBE;
use crate::support::{Stage, wait_unseen};

/// A probe that listens. It is killed with its stage.
#[derive(Clone)]
pub(crate) struct Listening(Arc<Mutex<Running>>);

struct KillOnDrop(Listening);

struct Running {
    child: Child,
    knobs: Knobs,
    url: String,
}

// === impl Listening ===

impl Listening {
    /// Starts one with these knobs, and returns when it listens.
    pub(crate) fn start(stage: &Stage, knobs: &Value) -> Self {
        let running = Running::start(stage.knobs(knobs));
        let listening = Self(Arc::new(Mutex::new(running)));
        stage.keep(KillOnDrop(listening.clone()));
        listening
    }

    pub(crate) fn url(&self) -> String {
        self.0.lock().unwrap().url.clone()
    }

    /// Kills it, and returns when it is dead, before anything else in this runtime has
    /// noticed.
    pub(crate) fn kill(&self) {
        self.0.lock().unwrap().kill();
    }

    /// Starts it again on the same port.
    pub(crate) fn start_again(&self) {
        let mut running = self.0.lock().unwrap();
        running.kill();
        let (_, port) = running.url.rsplit_once(':').expect("a port");
        let port = port.trim_end_matches("/mcp").parse().expect("a number");
        let mut knobs = running.knobs.clone();
        knobs.websocket.get_or_insert_default().port = port;
        *running = Running::start(knobs);
    }
}

// === impl KillOnDrop ===

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

// === impl Running ===

impl Running {
    fn start(knobs: Knobs) -> Self {
        let mut child = Command::new(PROBE)
            .args(["--probe", "--knobs", &knobs.to_json().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a probe");
        let mut url = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut url)
            .expect("it says where it listens");
        Self {
            child,
            knobs,
            url: url.trim().to_owned(),
        }
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        wait_unseen(self.child.id());
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
