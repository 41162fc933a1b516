//! What the pool needs of a connection, so that others can be brought.

mod held;
mod mcp;
mod stdio;

use std::{
    error::Error,
    fmt::{self, Debug},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use rmcp::model::{CallToolResult, Tool};
use steadfast_classify::{Failure, Flight};
use tokio::{sync::watch, time::Instant};

use crate::{ServerConfig, ToolCall};

pub use stdio::StdioConnect;

/// Makes connections. The pool makes one for each key, when it is needed.
pub trait Connect: Debug + Send + Sync + 'static {
    /// Starts or reaches a server, and makes the handshake.
    ///
    /// It should be done, or give up and say why, by `deadline`; the pool bounds it a
    /// little after that. The pool may drop the future at any time: whatever was started
    /// must then end by itself, at once.
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>>;

    /// Ends everything that was started and is left, without waiting, in a runtime or
    /// not. Called when a pool is dropped without being drained. Default: nothing.
    fn kill_all(&self) {}
}

/// One live connection to one server.
pub trait Link: Debug + Send + Sync + 'static {
    /// Calls a tool. Marks the flight as design says: `sending()` before the first byte,
    /// and a call that the connection lost is `NotSent` only if it was withdrawn.
    ///
    /// Dropping the future cancels the call on the wire.
    fn call(
        self: Arc<Self>,
        call: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResult, Failure>>;

    /// All tools of the server, all pages of them.
    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Tool>, Failure>>;

    /// Counts how often the server said that its list of tools had changed. Default: it
    /// never does.
    fn tools_changed(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    /// Resolves when the connection has ended by itself.
    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost>;

    /// Ends the connection within `limit`, or within its own steps if they are shorter,
    /// and resolves once nothing is left of it. Called once.
    fn close(self: Arc<Self>, limit: Duration) -> BoxFuture<'static, Closed>;

    /// The server's process, if it is one that we started.
    fn pid(&self) -> Option<u32> {
        None
    }
}

/// A connection that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// What was seen of it.
    pub reason: &'static str,
    /// How the server's process ended, if it is one that we started and it has ended.
    pub exit: Option<Arc<str>>,
    /// The last that it wrote to its standard error, if anything.
    pub stderr: Option<Arc<str>>,
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// Whether the server had to be killed.
    pub killed: bool,
    /// How many of its processes could not be proven dead; `None` if that could not be
    /// found out.
    pub survivors: Option<usize>,
    /// How long it took.
    pub took: Duration,
}

// === impl Closed ===

impl Closed {
    /// A connection that ended as it should, in no time.
    #[must_use]
    pub const fn clean() -> Self {
        Self {
            killed: false,
            survivors: Some(0),
            took: Duration::ZERO,
        }
    }
}

impl Default for Closed {
    fn default() -> Self {
        Self::clean()
    }
}

// === impl Lost ===

impl Lost {
    /// A connection that ended, with what was seen of it.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self {
            reason,
            exit: None,
            stderr: None,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)?;
        if let Some(exit) = &self.exit {
            write!(f, ": {exit}")?;
        }
        if let Some(stderr) = &self.stderr {
            write!(f, ", its last words: {stderr}")?;
        }
        Ok(())
    }
}

impl Error for Lost {}
