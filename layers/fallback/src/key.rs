//! Under what an answer is kept.

use std::{fmt, sync::Arc};

use steadfast_classify::{Caller, Question};

/// Under what an answer is kept: a server, and a question to it.
///
/// The parts stay apart and are compared whole; none is joined with another.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    server: Arc<str>,
    question: Question,
}

// === impl Key ===

impl Key {
    /// The key of this question to this server.
    #[must_use]
    pub fn new(server: impl Into<Arc<str>>, question: Question) -> Self {
        Self {
            server: server.into(),
            question,
        }
    }

    /// The server that is asked.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What is called on it.
    #[must_use]
    pub fn operation(&self) -> &str {
        self.question.operation()
    }

    /// What tells two calls of the operation apart.
    #[must_use]
    pub fn arguments(&self) -> &[u8] {
        self.question.arguments()
    }

    /// Who may be given the answer.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        self.question.caller()
    }

    pub(crate) fn shared_server(&self) -> Arc<str> {
        Arc::clone(&self.server)
    }

    /// How many bytes its parts hold.
    pub(crate) fn bytes(&self) -> usize {
        let caller = match self.caller() {
            Caller::Only(name) => name.len(),
            _ => 0,
        };
        self.server.len() + self.operation().len() + self.arguments().len() + caller
    }
}

/// Never prints arguments or callers.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("server", &self.server)
            .field("operation", &self.operation())
            .finish_non_exhaustive()
    }
}
