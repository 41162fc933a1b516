//! The knobs: one struct per place where a fault can be put.

mod call;
mod http;
mod list;
mod process;
mod start;
mod task;
mod websocket;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::call::{CallKnobs, OnCancel, ProgressKnobs, TokenSource};
pub use self::http::{At, Cut, Format, HttpFault, HttpKnobs, SseKnobs, Tls};
pub use self::list::{Cursors, ListKnobs};
pub use self::process::{HelperKnobs, ProcessKnobs};
pub use self::start::{Lifecycle, StartKnobs};
pub use self::task::{TaskEnd, TaskKnobs};
pub use self::websocket::{OnExit, WebSocketKnobs};
pub use self::wire::WireKnobs;

/// The environment variable that holds the knobs as JSON.
pub const KNOBS_ENV: &str = "STEADFAST_PROBE";

/// What the probe is told to do wrong; the default is a healthy server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// File to which each execution of a tool appends one line; see [`Ledger`](super::Ledger).
    pub ledger: Option<PathBuf>,
    /// File to which each received message appends one line; see [`Events`](super::Events).
    pub events: Option<PathBuf>,
    /// File that counts starts and calls over several processes; `later` needs it.
    pub state: Option<PathBuf>,
    /// Seed of all random choices; absent: a different one each time.
    pub seed: Option<u64>,
    /// Run a call once per value of this key in its `_meta`; a repeated one is answered without
    /// an execution. Remembered in the ledger if there is one, else in memory.
    pub dedup: Option<String>,
    /// Faults of starting and of the handshake.
    pub start: StartKnobs,
    /// The tool list and its faults.
    pub list: ListKnobs,
    /// Faults of every tool call; a call's own arguments override them one by one.
    pub call: CallKnobs,
    /// The same for the calls of one tool, by its name.
    pub tools: BTreeMap<String, CallKnobs>,
    /// Faults of the byte stream.
    pub wire: WireKnobs,
    /// Faults of the process: signals, end of input, a grandchild.
    pub process: ProcessKnobs,
    /// Serve streamable HTTP instead of stdin and stdout.
    pub http: Option<HttpKnobs>,
    /// Serve WebSockets instead of stdin and stdout.
    pub websocket: Option<WebSocketKnobs>,
    /// Other knobs from a later start on.
    pub later: Option<Box<Later>>,
}

/// The knobs that replace all others once the server was started often enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Later {
    /// How many starts keep the outer knobs.
    pub after_starts: u64,
    /// The knobs of all further starts. `ledger`, `events` and `state` stay as they were unless
    /// set here.
    pub knobs: Knobs,
}

/// The knobs cannot be read, or contradict each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKnobs {
    /// Not JSON, an unknown knob or a wrong value; the source names it and what is allowed.
    #[error("wrong knobs: {0}")]
    Json(#[from] serde_json::Error),
    /// A knob that only works together with another one.
    #[error("knob `{knob}` needs knob `{needs}`")]
    Needs {
        /// The knob that was set.
        knob: &'static str,
        /// The knob that is missing.
        needs: &'static str,
    },
}

// === impl Knobs ===

impl Knobs {
    /// Reads knobs from their JSON form.
    ///
    /// # Errors
    /// When the text is not JSON, names an unknown knob, gives a wrong value, or sets a knob
    /// without the one it needs.
    pub fn from_json(text: &str) -> Result<Self, InvalidKnobs> {
        let knobs: Self = serde_json::from_str(text)?;
        if knobs.later.is_some() && knobs.state.is_none() {
            return Err(InvalidKnobs::Needs {
                knob: "later",
                needs: "state",
            });
        }
        Ok(knobs)
    }

    /// The knobs as JSON, without those that have their default.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Object(set_only(self))
    }

    /// The `mcpServers` entry that starts `exe` as a probe with these knobs.
    ///
    /// `exe` is the binary `probe`, or any program that calls
    /// [`serve_if_child`](super::serve_if_child) first in its `main`.
    #[must_use]
    pub fn server_json(&self, exe: &Path) -> Value {
        json!({
            "command": exe.to_string_lossy(),
            "args": ["--probe"],
            "env": { KNOBS_ENV: self.to_json().to_string() },
        })
    }

    /// The knobs of the start after `earlier` others.
    pub(crate) fn at_start(self, earlier: u64) -> Self {
        let Some(later) = self.later else { return self };
        if earlier < later.after_starts {
            return Self {
                later: None,
                ..self
            };
        }
        let knobs = later.knobs;
        Self {
            ledger: knobs.ledger.or(self.ledger),
            events: knobs.events.or(self.events),
            state: knobs.state.or(self.state),
            ..knobs
        }
        .at_start(earlier)
    }

    /// The knobs of one call: those of all calls, of the tool, of its own arguments.
    pub(crate) fn for_call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<CallKnobs, serde_json::Error> {
        let mut merged = set_only(&self.call);
        if let Some(tool) = self.tools.get(tool) {
            merged.extend(set_only(tool));
        }
        merged.extend(arguments.clone());
        serde_json::from_value(Value::Object(merged))
    }
}

/// The fields of `knobs` that differ from their default.
fn set_only<T: Serialize + Default>(knobs: &T) -> Map<String, Value> {
    match (
        serde_json::to_value(knobs),
        serde_json::to_value(T::default()),
    ) {
        (Ok(Value::Object(set)), Ok(Value::Object(default))) => differing(set, &default),
        // Not reached: every knob is a struct of plain data, paths included (they came from JSON
        // or from a test's UTF-8 temporary directory).
        _ => Map::new(),
    }
}

fn differing(set: Map<String, Value>, default: &Map<String, Value>) -> Map<String, Value> {
    set.into_iter()
        .filter_map(|(name, value)| match (value, default.get(&name)) {
            (value, Some(default)) if value == *default => None,
            (Value::Object(set), Some(Value::Object(default))) => {
                Some((name, Value::Object(differing(set, default))))
            }
            (value, _) => Some((name, value)),
        })
        .collect()
}
