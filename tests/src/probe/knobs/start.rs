//! Faults of starting and of the handshake.

use serde::{Deserialize, Serialize};

/// What goes wrong before a client can use the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartKnobs {
    /// Do not announce that calls may become tasks.
    pub no_tasks: bool,
    /// A line on stderr before anything else; only in a process of its own.
    pub stderr: Option<String>,
    /// Exit with this code at once, without reading anything.
    pub exit: Option<i32>,
    /// Use so much CPU time before reading anything; only in a process of its own.
    pub burn_ms: u64,
    /// Which of the protocol's lifecycles it speaks.
    pub lifecycle: Lifecycle,
    /// Wait so long before answering `initialize` or `server/discover`.
    pub delay_ms: u64,
    /// Never answer either of them.
    pub never: bool,
    /// Exit with this code on receiving `initialize`, after `delay_ms`, without an answer.
    pub exit_on_initialize: Option<i32>,
    /// Answer `initialize` and the last page of `tools/list`, then exit with this code.
    pub exit_after_list: Option<i32>,
    /// Answer them with this JSON-RPC error code.
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

/// How a client and a server get to know each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// However the client begins.
    #[default]
    Both,
    /// With `initialize`: 2024-11-05 to 2025-11-25.
    Initialize,
    /// Without it: 2026-07-28.
    Stateless,
}

// === impl Lifecycle ===

impl Lifecycle {
    pub(crate) const fn has_initialize(self) -> bool {
        matches!(self, Self::Both | Self::Initialize)
    }

    pub(crate) const fn has_discover(self) -> bool {
        matches!(self, Self::Both | Self::Stateless)
    }
}
