//! News of changed lists.

use tokio::sync::watch;

/// A list of a server that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Prompts,
    /// And their templates.
    Resources,
}

/// Counts how often the server said that a list had changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    tools: watch::Sender<u64>,
    prompts: watch::Sender<u64>,
    resources: watch::Sender<u64>,
}

// === impl Changes ===

impl Changes {
    pub(super) fn note(&self, list: List) {
        self.of(list).send_modify(|count| *count += 1);
    }

    pub(super) const fn of(&self, list: List) -> &watch::Sender<u64> {
        match list {
            List::Tools => &self.tools,
            List::Prompts => &self.prompts,
            List::Resources => &self.resources,
        }
    }
}
