//! Faults of starting and of the handshake.

use serde::{Deserialize, Serialize};

/// What goes wrong before a client can use the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartKnobs {
    /// A line on stderr before anything else; only in a process of its own.
    pub stderr: Option<String>,
    /// Exit with this code at once, without reading anything.
    pub exit: Option<i32>,
    /// Use so much CPU time before reading anything; only in a process of its own.
    pub burn_ms: u64,
    /// Wait so long before answering `initialize`.
    pub delay_ms: u64,
    /// Never answer `initialize`.
    pub never: bool,
    /// Exit with this code on receiving `initialize`, after `delay_ms`, without an answer.
    pub exit_on_initialize: Option<i32>,
    /// Answer `initialize` and the last page of `tools/list`, then exit with this code.
    pub exit_after_list: Option<i32>,
    /// Answer `initialize` with this JSON-RPC error code.
    pub rpc_error: Option<i64>,
    /// The text of that error.
    pub rpc_message: Option<String>,
    /// Answer `initialize` with this protocol version, whatever was asked for.
    pub version: Option<String>,
    /// Answer `initialize` without a protocol version.
    pub no_version: bool,
    /// The server's instructions.
    pub instructions: Option<String>,
    /// Refuse every request but `initialize` and `ping` before `notifications/initialized`.
    pub strict: bool,
    /// Answer `initialize` and nothing else.
    pub mute: bool,
    /// Never answer `ping`.
    pub ignore_ping: bool,
}
