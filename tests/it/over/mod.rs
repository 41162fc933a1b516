//! Cases that are the same over every transport that is no process of the pool's own.

pub(crate) mod cancels;
pub(crate) mod limits;
mod listening;
pub(crate) mod losses;

use serde_json::{Value, json};
use steadfast::{ServerConfig, pool::ServerConfigBuilder};
use steadfast_tests::probe::serve;
use tokio::io;

use crate::support::Stage;

/// How the probe of a case is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    InProcess,
    WebSocket,
}

// === impl Over ===

impl Over {
    /// The probe with these knobs. What its tools say of themselves is believed.
    pub(crate) async fn builder(self, stage: &Stage, knobs: &Value) -> ServerConfigBuilder {
        match self {
            Self::InProcess => in_process(stage, knobs),
            Self::WebSocket => ServerConfig::websocket("probe", listen(stage, knobs).url()),
        }
        .trust(true)
    }

    pub(crate) async fn server(self, stage: &Stage, knobs: &Value) -> ServerConfig {
        let builder = self.builder(stage, knobs).await;
        builder.build().expect("a good configuration")
    }

    /// How large a message is that cannot be written while the server reads nothing.
    pub(crate) const fn stuck_at(self) -> usize {
        match self {
            Self::InProcess => 1 << 20,
            // The system keeps up to 4 MiB of what is sent, and what the knobs say of what is
            // received.
            Self::WebSocket => 5 << 20,
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
