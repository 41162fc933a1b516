//! Where a failure came from.

use std::{fmt, sync::Arc};

/// Where a failure came from: the layer that made it, and the server and operation it
/// is about. Every part may be missing.
///
/// For MCP the operation is the tool, prompt or resource; for HTTP, the path. Server
/// and operation are kept apart and never joined into one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// The layer that made the failure, such as `"timeout"` or `"circuit breaker"`.
    pub layer: Option<&'static str>,
    /// The server the call was for.
    pub server: Option<Arc<str>>,
    /// What was called on it.
    pub operation: Option<Arc<str>>,
}

// === impl Origin ===

impl Origin {
    /// An origin that names only a server.
    #[must_use]
    pub fn server(server: impl Into<Arc<str>>) -> Self {
        Self {
            server: Some(server.into()),
            ..Self::default()
        }
    }

    /// Adds what was called on the server.
    #[must_use]
    pub fn with_operation(mut self, operation: impl Into<Arc<str>>) -> Self {
        self.operation = Some(operation.into());
        self
    }

    /// Fills what this origin does not say with what `other` says.
    pub(crate) fn fill(&mut self, other: &Self) {
        if self.layer.is_none() {
            self.layer = other.layer;
        }
        if self.server.is_none() {
            self.server.clone_from(&other.server);
        }
        if self.operation.is_none() {
            self.operation.clone_from(&other.operation);
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.server, &self.operation) {
            (Some(server), Some(operation)) => write!(f, "\"{operation}\" on \"{server}\""),
            (Some(server), None) => write!(f, "\"{server}\""),
            (None, Some(operation)) => write!(f, "\"{operation}\""),
            (None, None) => f.write_str("call"),
        }
    }
}
