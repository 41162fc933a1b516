//! The places that servers may work in.

#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::sync::Arc;

use rmcp::model::{ListRootsResult, Root as Theirs};

/// A place that servers may work in, mostly a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    uri: Arc<str>,
    name: Option<Arc<str>>,
}

// === impl Root ===

impl Root {
    /// The place at `uri`, mostly `file:///…`.
    #[must_use]
    pub fn new(uri: impl Into<Arc<str>>) -> Self {
        Self {
            uri: uri.into(),
            name: None,
        }
    }

    /// Gives it a name for people.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

pub(super) fn listed(roots: &[Root]) -> ListRootsResult {
    let roots = roots.iter().map(|root| {
        let theirs = Theirs::new(&*root.uri);
        match &root.name {
            Some(name) => theirs.with_name(&**name),
            None => theirs,
        }
    });
    ListRootsResult::new(roots.collect())
}
