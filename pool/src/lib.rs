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
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use steadfast_pool::{Pool, PoolSettings, ServerConfig};
//! use tower::ServiceExt as _;
//!
//! let files = ServerConfig::stdio("files", "npx")
//!     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv"])
//!     .build()?;
//! let pool = Pool::new(PoolSettings::default())?;
//! let session = pool.session("agent-1");
//! let lease = session.acquire(&files).await?;
//! let call = lease.tool("list_allowed_directories");
//! let result = lease.oneshot(call).await?;
//! println!("{:?}", result.content);
//! pool.drain_all(std::time::Duration::from_secs(10)).await;
//! # Ok(())
//! # }
//! ```
//!
//! It speaks MCP through [`rmcp`], over a wire of its own: what is queued, sent and
//! answered is known for each request.
//!
//! # Features
//!
//! Programs and servers in this program can always be reached; `http` adds streamable HTTP
//! (`HttpConnect`), `websocket` WebSockets, and `metrics` the numbers below.
//!
//! # Runtimes
//!
//! A connection is a task in the runtime of whoever asked for it first, and ends with that
//! runtime: a program with several keeps its pool in the one that lives longest.
//!
//! # What it tells
//!
//! [`Pool::snapshot`] says what there is, [`Pool::events`] what happens; both go to the logs
//! too, by [`tracing`]. Each request is a span, at level `info`, under the names that
//! OpenTelemetry's conventions have for MCP: named `tools/call {tool}` (`otel.name`), with
//! `mcp.method.name`, `gen_ai.tool.name`, `jsonrpc.request.id`, `error.type` and the like,
//! and of ours `steadfast.server`, `steadfast.attempt`, `steadfast.class` and
//! `steadfast.phase`. A call that nobody waited for to its end, be it that a limit passed, is
//! `cancelled` there. Arguments, results and addresses are in none of them.
//!
//! With feature `metrics`, by the [`metrics`](https://docs.rs/metrics) crate:
//!
//! | name | kind | labels | |
//! |---|---|---|---|
//! | `mcp.client.operation.duration` | histogram, s | `server`, `mcp.method.name`, `network.transport`, `gen_ai.operation.name`, `gen_ai.tool.name` or `gen_ai.prompt.name`, `error.type` | requests, from when they were sent |
//! | `steadfast.pool.starts` | counter | `server`, `outcome` | attempts to connect |
//! | `steadfast.pool.start.duration` | histogram, s | `server` | how long the good ones took |
//! | `steadfast.pool.connections` | gauge | `server` | connections in use |
//! | `steadfast.pool.losses` | counter | `server` | connections that ended by themselves |
//! | `steadfast.pool.killed` | counter | `server` | ends that had to be forced |
//! | `steadfast.pool.slots.warnings` | counter | | slots running out |
//! | `steadfast.pool.slots.refusals` | counter | | servers refused a slot |
//!
//! `outcome` is `connected`, or the class of the failure. `error.type` is a JSON-RPC code
//! (`_OTHER` for one that no protocol reserves), `tool_error` for a result that reports an
//! error, or the class of the failure. A tool or prompt is named if the server lists it.

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
mod task;
mod ties;
mod time;
mod view;
mod wire;

pub use ask::{AskHandler, Asking, Host, Offers, Root, Unanswered};
pub use call::ToolCall;
pub use config::{
    CallSettings, ConfigError, ConfigErrors, ConfigFile, ConfigWarning, Endpoint, Family, Filter,
    IdempotencyPolicy, InProcess, OAuth, Program, Remote, ServerConfig, ServerConfigBuilder,
    SharedFamilies, ToolHints,
};
pub use drain::{DrainReport, Forced};
pub use entry::Respawn;
pub use error::{NotYet, Refused};
pub use events::{DetachReason, PoolEvent};
pub use key::Key;
pub use lease::{CallFuture, Lease};
#[cfg(feature = "http")]
pub use link::HttpConnect;
pub use link::{
    AnyConnect, Closed, Connect, InProcessConnect, Link, Lost, StdioConnect, VersionMismatch,
};
#[cfg(feature = "websocket")]
pub use link::{WebSocketConnect, WebSocketFailed};
pub use pool::{Pool, Restart};
pub use progress::{Progress, ProgressStream};
/// The HTTP client, whose types [`HttpConnect::with_client`] names.
#[cfg(feature = "http")]
#[doc(no_inline)]
pub use reqwest;
pub use session::Session;
pub use settings::{InvalidPoolSettings, Keepalive, PoolSettings};
pub use slots::{SlotMode, SlotsFull, SlotsView};
pub use snapshot::{EntrySnapshot, ServerSnapshot, SlotsSnapshot, Snapshot, Status};
pub use task::TaskEnded;
pub use ties::Round;
pub use view::{Fault, Flaw, Listing, PromptView, ResourceView, ToolView};
#[cfg(any(feature = "http", feature = "websocket"))]
pub use wire::HttpRefused;
#[cfg(feature = "http")]
pub use wire::http::{Authorize, AuthorizeError, HttpFailed, Rejected};
