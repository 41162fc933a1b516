//! What of a server's lists a session sees: a pure function of lists and filter, kept for
//! as long as the lists are the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use rmcp::model::{Prompt, Tool};

use super::{PromptView, ToolView, catalog::Catalog};
use crate::Filter;

/// The lists that pass one filter. Nothing in them is changed: trust is looked at when a
/// call is made, in the configuration of the session that makes it.
#[derive(Debug)]
pub(crate) struct Projection {
    of: Generations,
    tools: Arc<[Tool]>,
    prompts: Arc<[Prompt]>,
}

/// Of tools and prompts.
type Generations = (u64, u64);

/// The projections of one server that some session has: those with equal filters share one.
#[derive(Debug, Default)]
pub(crate) struct Projections(Mutex<HashMap<Filter, Weak<Projection>>>);

/// Below that many there is nothing to tidy up.
const FEW: usize = 16;

// === impl Projections ===

impl Projections {
    /// What passes `filter`. `known` is what the asker got last time.
    pub(crate) fn get(
        &self,
        catalog: &Catalog,
        filter: &Filter,
        known: Option<&Arc<Projection>>,
    ) -> Arc<Projection> {
        let of = catalog.generations();
        if let Some(known) = known.filter(|known| known.of == of) {
            return Arc::clone(known);
        }
        let mut projections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = projections.get(filter).and_then(Weak::upgrade);
        if let Some(shared) = shared.filter(|shared| shared.of == of) {
            return shared;
        }
        if projections.len() >= FEW && projections.len() == projections.capacity() {
            projections.retain(|_, projection| projection.strong_count() > 0);
        }
        let projection = Arc::new(Projection::new(catalog, filter));
        projections.insert(filter.clone(), Arc::downgrade(&projection));
        projection
    }
}

// === impl Projection ===

impl Projection {
    fn new(catalog: &Catalog, filter: &Filter) -> Self {
        Self {
            of: catalog.generations(),
            tools: pass(&catalog.tools.items, |tool| filter.allows(&tool.name)),
            prompts: pass(&catalog.prompts.items, |prompt| filter.allows(&prompt.name)),
        }
    }

    pub(crate) fn tools(&self, catalog: &Catalog) -> ToolView {
        ToolView {
            tools: Arc::clone(&self.tools),
            flaws: Arc::clone(&catalog.tools.flaws),
            generation: catalog.tools.generation,
            stale: catalog.tools.stale.clone(),
        }
    }

    pub(crate) fn prompts(&self, catalog: &Catalog) -> PromptView {
        PromptView {
            prompts: Arc::clone(&self.prompts),
            flaws: Arc::clone(&catalog.prompts.flaws),
            generation: catalog.prompts.generation,
            stale: catalog.prompts.stale.clone(),
        }
    }
}

// === impl Catalog ===

impl Catalog {
    const fn generations(&self) -> Generations {
        (self.tools.generation, self.prompts.generation)
    }
}

/// The items that pass; the very same list if all do.
fn pass<T: Clone>(items: &Arc<[T]>, passes: impl Fn(&T) -> bool) -> Arc<[T]> {
    if items.iter().all(&passes) {
        return Arc::clone(items);
    }
    items.iter().filter(|item| passes(item)).cloned().collect()
}
