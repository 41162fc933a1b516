//! What a connection is to its server.

use std::{fmt, sync::Arc};

use rmcp::model::{ClientCapabilities, ExtensionCapabilities, JsonObject, TASKS_EXTENSION_ID};

/// What a connection is to its server: what it announces in its handshake, and who answers
/// what the server asks over it.
///
/// The pool makes one for each key, and gives it to whoever makes the key's connections. A
/// clone is the same host. [`Default`] announces that
/// tasks are followed, and refuses everything else.
#[derive(Clone, Default)]
pub struct Host(Arc<Inner>);

#[derive(Default)]
struct Inner {}

// === impl Host ===

impl Host {
    /// What is to be announced to the server: only what can be answered.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        let Inner {} = &*self.0;
        let mut capabilities = ClientCapabilities::default();
        // Whatever connection a task was begun on, the pool follows it.
        let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.extensions = Some(ExtensionCapabilities::from([tasks]));
        capabilities
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}
