//! How connections end.

use std::{error::Error, fmt, sync::Arc, time::Duration};

/// A connection that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// What was seen of it.
    pub reason: &'static str,
    /// How the server ended, if it is a process that we started, or said itself why it
    /// broke off the connection.
    pub exit: Option<Arc<str>>,
    /// The last that it wrote to its standard error, if anything.
    pub stderr: Option<Arc<str>>,
    /// Whether the calls on it may still be answered. It takes no new ones, and is closed
    /// once the last has ended.
    pub superseded: bool,
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
    /// A connection that had to be killed, and of which nobody can tell whether something
    /// is left.
    pub(crate) const fn unproven(took: Duration) -> Self {
        Self {
            killed: true,
            survivors: None,
            took,
        }
    }

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
            superseded: false,
        }
    }

    /// A connection that takes no new calls, such as an HTTP session that has expired.
    /// Another is made for those; the calls that run on it may finish.
    #[must_use]
    pub const fn superseded(reason: &'static str) -> Self {
        let mut lost = Self::new(reason);
        lost.superseded = true;
        lost
    }

    /// Adds how the server ended, and what it wrote last.
    pub(super) fn with_server(mut self, exit: Option<Arc<str>>, stderr: Option<String>) -> Self {
        self.exit = exit;
        self.stderr = stderr
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .map(Into::into);
        self
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
