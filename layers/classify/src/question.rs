//! What is asked, and who asks.

use std::{fmt, sync::Arc};

/// What a call asks of its server, and who asks: two calls with equal questions may be
/// given each other's answers.
///
/// The parts stay apart and are compared whole; none is joined with another.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Question {
    operation: Arc<str>,
    arguments: Arc<[u8]>,
    caller: Caller,
}

/// Who may be given an answer that was kept.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Caller {
    /// Whoever asks. Only for servers that answer everybody alike.
    Anyone,
    /// Only who asks under the same name: a session, a user, a tenant.
    Only(Arc<str>),
}

// === impl Question ===

impl Question {
    /// A question. `arguments` is whatever tells two calls of the same operation apart:
    /// their canonical bytes, or a digest of these that does not collide (SHA-256).
    #[must_use]
    pub fn new(
        operation: impl Into<Arc<str>>,
        arguments: impl Into<Arc<[u8]>>,
        caller: Caller,
    ) -> Self {
        Self {
            operation: operation.into(),
            arguments: arguments.into(),
            caller,
        }
    }

    /// What is called.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// What tells two calls of the operation apart.
    #[must_use]
    pub fn arguments(&self) -> &[u8] {
        &self.arguments
    }

    /// Who may be given the answer.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }
}

/// Never prints arguments or callers.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

// === impl Caller ===

impl Caller {
    /// Only who asks under this name.
    #[must_use]
    pub fn only(name: impl Into<Arc<str>>) -> Self {
        Self::Only(name.into())
    }
}

/// Never prints the name.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anyone => "Anyone",
            Self::Only(_) => "Only(..)",
        })
    }
}
