//! A pool that lets many agent sessions share one MCP server connection.
//!
//! Ten agents with eight servers each are eighty processes; with a pool they are eight.
//! It starts a server when the first session needs it, shares it by (name, configuration)
//! with everyone who asks for the same, replaces it when it dies, and ends it, with
//! everything that it started, when nobody needs it any more.
//!
//! ```text
//!  Pool ── session("a") ── Lease ─┐          ┌─ Starting ─► Active ─► Closing ─┐
//!       ── session("b") ── Lease ─┴─ seats ──┤                                 │
//!                                            └────────────── Vacant ◄──────────┘
//! ```
//!
//! A [`Lease`] is the innermost [`Service`](tower_service::Service) of a stack: it makes
//! one attempt, says exactly what became of it ([`Failure`](steadfast_classify::Failure)),
//! and repeats nothing. Retries, limits, breakers and fallbacks are other crates'.
//!
//! It speaks MCP through [`rmcp`], over a wire of its own: what is queued, sent and
//! answered is known for each request.

mod ask;
mod call;
mod config;
mod drain;
mod entry;
mod error;
mod events;
mod key;
mod lease;
mod link;
mod observe;
mod pool;
pub mod process;
mod progress;
mod seat;
mod session;
mod settings;
mod shared;
mod slots;
mod snapshot;
mod ties;
mod time;
mod view;
mod wire;

pub use ask::Host;
pub use call::ToolCall;
pub use config::{
    CallSettings, ConfigError, ConfigErrors, ConfigFile, ConfigWarning, Endpoint, Family, Filter,
    IdempotencyPolicy, OAuth, Program, Remote, ServerConfig, ServerConfigBuilder, SharedFamilies,
    ToolHints,
};
pub use drain::{DrainReport, Forced};
pub use entry::Respawn;
pub use error::{NotYet, Refused};
pub use events::{DetachReason, PoolEvent};
pub use key::Key;
pub use lease::{CallFuture, Lease};
pub use link::{AnyConnect, Closed, Connect, Link, Lost, StdioConnect, VersionMismatch};
pub use pool::{Pool, Restart};
pub use progress::{Progress, ProgressStream};
pub use session::Session;
pub use settings::{InvalidPoolSettings, Keepalive, PoolSettings};
pub use slots::{SlotMode, SlotsFull, SlotsView};
pub use snapshot::{EntrySnapshot, ServerSnapshot, Snapshot, Status};
pub use view::{PromptView, ResourceView, ToolView};
