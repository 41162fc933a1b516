//! Cases that are the same over every transport, or over most of them.

pub(crate) mod cancels;
pub(crate) mod limits;
mod listening;
pub(crate) mod losses;
pub(crate) mod noise;
pub(crate) mod tasks;

use std::sync::Arc;

use serde_json::{Value, json};
use steadfast::{ServerConfig, pool::ServerConfigBuilder};
use steadfast_tests::probe::{HttpProbe, KNOBS_ENV, serve};
use tokio::io;

use crate::support::Stage;

const PROBE: &str = env!("CARGO_BIN_EXE_probe");

/// How the probe of a case is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Stdio,
    InProcess,
    WebSocket,
    /// Answers are JSON, and what precedes them comes in the stream that is for no request.
    Http,
    /// Answers are events.
    HttpEvents,
}

// === impl Over ===

impl Over {
    /// The probe with these knobs. What its tools say of themselves is believed.
    pub(crate) async fn builder(self, stage: &Stage, knobs: &Value) -> ServerConfigBuilder {
        match self {
            Self::Stdio => stdio(stage, knobs),
            Self::InProcess => in_process(stage, knobs),
            Self::WebSocket => ServerConfig::websocket("probe", listen(stage, knobs).url()),
            Self::Http => http(stage, knobs, "json").await,
            Self::HttpEvents => http(stage, knobs, "sse").await,
        }
        .trust(true)
    }

    pub(crate) async fn server(self, stage: &Stage, knobs: &Value) -> ServerConfig {
        let builder = self.builder(stage, knobs).await;
        builder.build().expect("a good configuration")
    }

    /// Whether all messages come the same way. Over HTTP each request has an answer of its own,
    /// and nothing more comes of one that was given up.
    pub(crate) const fn has_one_connection(self) -> bool {
        !matches!(self, Self::Http | Self::HttpEvents)
    }

    /// What takes the connection from a call that was executed, without an answer.
    pub(crate) fn lost(self) -> Value {
        match self {
            Self::Stdio | Self::InProcess | Self::WebSocket => json!({"exit_after": 1}),
            Self::Http | Self::HttpEvents => json!({"http": {"cut": "reset", "at": "executed"}}),
        }
    }

    /// The same for the first call only.
    pub(crate) fn lost_once(self) -> Value {
        let mut lost = self.lost();
        match self {
            Self::Stdio | Self::InProcess | Self::WebSocket => lost["times"] = json!(1),
            Self::Http | Self::HttpEvents => lost["http"]["times"] = json!(1),
        }
        lost
    }

    /// How large a message is that cannot be written while the server reads nothing.
    pub(crate) const fn stuck_at(self) -> usize {
        match self {
            Self::Stdio | Self::InProcess => 1 << 20,
            // The system keeps up to 4 MiB of what is sent, and what the knobs say of what is
            // received.
            Self::WebSocket | Self::Http | Self::HttpEvents => 5 << 20,
        }
    }
}

/// A probe that serves WebSockets, and what a knob ends is one connection.
pub(crate) fn listen(stage: &Stage, knobs: &Value) -> Listening {
    let mut knobs = knobs.clone();
    let own = json!({"on_exit": "reset", "receive_buffer": 65_536});
    let websocket = knobs.as_object_mut().expect("knobs").entry("websocket");
    let websocket = websocket.or_insert_with(|| json!({}));
    for (name, value) in own.as_object().expect("knobs") {
        let knobs = websocket.as_object_mut().expect("knobs");
        knobs.entry(name).or_insert_with(|| value.clone());
    }
    Listening::start(stage, &knobs)
}

fn stdio(stage: &Stage, knobs: &Value) -> ServerConfigBuilder {
    let knobs = stage.knobs(knobs).to_json().to_string();
    ServerConfig::stdio("probe", PROBE)
        .arg("--probe")
        .env(KNOBS_ENV, knobs)
}

/// A probe that serves HTTP in this process for as long as its stage is there.
async fn http(stage: &Stage, knobs: &Value, answers: &str) -> ServerConfigBuilder {
    let mut knobs = knobs.clone();
    knobs["http"] = json!({ "answers": answers });
    let probe = HttpProbe::start(stage.knobs(&knobs)).await.expect("a port");
    let probe = Arc::new(probe);
    let url = probe.url();
    stage.keep(Arc::clone(&probe));
    stage.none_is_left(move || probe.connections());
    ServerConfig::http("probe", url)
}

fn in_process(stage: &Stage, knobs: &Value) -> ServerConfigBuilder {
    let knobs = stage.knobs(knobs);
    ServerConfig::in_process("probe", move |connection| {
        let knobs = knobs.clone();
        async move {
            let (input, output) = io::split(connection);
            serve(knobs, input, output).await.expect("it can start");
        }
    })
}

/// Declares a test for each case that this transport has.
macro_rules! over {
    ($over:expr; $($name:ident => $case:path;)+) => {$(
        #[tokio::test]
        async fn $name() {
            $case($over).await;
        }
    )+};
}

pub(crate) use listening::Listening;
pub(crate) use over;
