//! A fault-injecting MCP server.
//!
//! Without knobs it is healthy: tools `w` (no annotations), `r` (`readOnlyHint`), `i`
//! (`idempotentHint`), `env` and `pid`, two prompts, two resources. Each fault is a knob of
//! [`Knobs`], given as JSON in the environment variable [`KNOBS_ENV`] or after `--knobs`; a
//! tool's arguments are [`CallKnobs`] too, for faults in one call only.
//!
//! Each *execution* of a tool appends one line to the [`Ledger`], synced to disk before anything
//! else happens, so executions can be counted after any kill. The [`Events`] log tells what was
//! received, in order.
//!
//! ```text
//!  bytes in ── reader ──► Session::receive ──► one task per call ──► Outbox ── writer ──► bytes out
//!              (stdio)    (what a request does; knows nothing of bytes)       (stdio)
//! ```
//!
//! It covers MCP 2024-11-05 to 2026-07-28 over stdio, can serve any pair of byte streams with
//! [`serve`], streamable HTTP as a process with the knob `http`, or in this one with
//! [`HttpProbe`], and WebSockets as a process with the knob `websocket`.
//!
//! ```
//! use steadfast_tests::probe::{Knobs, StartKnobs};
//!
//! let slow = Knobs {
//!     start: StartKnobs { delay_ms: 4_000, ..StartKnobs::default() },
//!     ..Knobs::default()
//! };
//! let entry = slow.server_json("target/debug/probe".as_ref());
//! assert_eq!(entry["env"]["STEADFAST_PROBE"], r#"{"start":{"delay_ms":4000}}"#);
//! ```

mod answer;
mod call;
mod child;
mod events;
mod fixed;
mod handshake;
#[cfg(unix)]
mod helper;
mod http;
mod knobs;
mod ledger;
mod log;
mod message;
mod outbox;
mod pause;
mod progress;
mod server;
mod session;
mod state;
mod stdio;
mod tasks;
mod tools;
mod websocket;
mod writer;

pub use self::child::{run, serve_if_child};
pub use self::events::{Event, EventKind, Events};
pub use self::http::{HttpProbe, HttpRequest, HttpRequests};
pub use self::knobs::{
    At, CallKnobs, Cursors, Cut, Format, HelperKnobs, HttpFault, HttpKnobs, InvalidKnobs,
    KNOBS_ENV, Knobs, Later, Lifecycle, ListKnobs, OnCancel, OnExit, ProcessKnobs, ProgressKnobs,
    SseKnobs, StartKnobs, TaskEnd, TaskKnobs, Tls, TokenSource, WebSocketKnobs, WireKnobs,
};
pub use self::ledger::{Execution, Ledger};
pub use self::log::Log;
pub use self::stdio::serve;
