//! Why a server broke off.

use std::sync::{Arc, OnceLock};

/// What a server said when it broke off the connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Farewell(Arc<OnceLock<Arc<str>>>);

// === impl Farewell ===

impl Farewell {
    /// Notes what the server said last. Only the first word counts.
    #[cfg(feature = "websocket")]
    pub(crate) fn say(&self, words: impl Into<Arc<str>>) {
        let _ = self.0.set(words.into());
    }

    pub(crate) fn words(&self) -> Option<Arc<str>> {
        self.0.get().cloned()
    }
}
