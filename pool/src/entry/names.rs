//! Tools that a configuration names and the server does not have.

use std::{collections::BTreeSet, sync::Arc};

use super::{state::State, station::Station};
use crate::{Flaw, ServerConfig, observe};

/// Enough for any configuration: beyond it nothing more is told of this server.
const MANY: usize = 1000;

// === impl Station ===

impl Station {
    /// Tells of each tool that `config` names and the server does not have, once. A name
    /// that is written wrong would otherwise be a tool that is silently missing, or a
    /// limit that silently does not hold.
    pub(crate) fn check_names(&self, config: &ServerConfig) {
        if config.named_tools().next().is_none() {
            return;
        }
        let missing = self.state().note_missing(config);
        if !missing.is_empty() {
            observe::tools_missing(self.pool().events(), self.name(), missing);
        }
    }
}

// === impl State ===

impl State {
    fn note_missing(&mut self, config: &ServerConfig) -> Vec<Arc<str>> {
        let catalog = &self.catalog;
        let (tools, prompts) = (&catalog.tools, &catalog.prompts);
        let known = tools.generation > 0
            && tools.stale.is_none()
            && !tools.flaws.iter().any(Flaw::is_unreadable)
            && !self.outdated;
        if !known {
            return Vec::new();
        }
        // The filter is for prompts too.
        let prompt = |name: &str| {
            prompts.stale.is_some() || prompts.items.iter().any(|prompt| prompt.name == name)
        };
        let missing: BTreeSet<_> = config
            .named_tools()
            .filter(|(name, filters)| catalog.tool(name).is_none() && !(*filters && prompt(name)))
            .map(|(name, _)| Arc::<str>::from(name))
            .filter(|name| !self.missing.contains(name))
            .take(MANY.saturating_sub(self.missing.len()))
            .collect();
        self.missing.extend(missing.iter().cloned());
        missing.into_iter().collect()
    }
}
