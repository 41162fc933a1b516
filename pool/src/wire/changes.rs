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
    tools: Counter,
    prompts: Counter,
    resources: Counter,
}

#[derive(Debug)]
struct Counter {
    count: watch::Sender<u64>,
    /// Has seen nothing yet.
    fresh: watch::Receiver<u64>,
}

// === impl Changes ===

impl Changes {
    pub(super) fn note(&self, list: List) {
        self.of(list).count.send_modify(|count| *count += 1);
    }

    /// A receiver to which everything is news that came since the wire was made: what
    /// came before somebody listened may be about a list that was asked for before it.
    pub(super) fn listen(&self, list: List) -> watch::Receiver<u64> {
        self.of(list).fresh.clone()
    }

    const fn of(&self, list: List) -> &Counter {
        match list {
            List::Tools => &self.tools,
            List::Prompts => &self.prompts,
            List::Resources => &self.resources,
        }
    }
}

// === impl Counter ===

impl Default for Counter {
    fn default() -> Self {
        let (count, fresh) = watch::channel(0);
        Self { count, fresh }
    }
}
