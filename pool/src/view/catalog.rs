//! The last good lists of a server.

use std::{collections::HashMap, sync::Arc};

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use steadfast_classify::Failure;

use super::{Flaw, Listing, ResourceView};

/// What a server offers, as it last said. Immutable: a new list makes a new catalog.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: List<Tool>,
    pub(crate) prompts: List<Prompt>,
    resources: List<Resource>,
    templates: List<ResourceTemplate>,
    by_name: Arc<HashMap<Box<str>, usize>>,
}

/// An immutable list, as the server last gave it.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Arc<[T]>,
    /// What was left out of it.
    pub(crate) flaws: Arc<[Flaw]>,
    /// Grows with every list that was taken over; 0 before the first.
    pub(crate) generation: u64,
    /// Why the list could not be had anew, if it could not: what there is is old.
    pub(crate) stale: Option<Failure>,
}

/// Lists as they were asked for; `None` is one that was not.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Option<Result<Listing<Tool>, Failure>>,
    pub(crate) prompts: Option<Result<Listing<Prompt>, Failure>>,
    pub(crate) resources: Option<Result<Listing<Resource>, Failure>>,
    pub(crate) templates: Option<Result<Listing<ResourceTemplate>, Failure>>,
}

// === impl Catalog ===

impl Catalog {
    /// The catalog after some lists were asked for.
    pub(crate) fn refreshed(&self, listed: Listed) -> Self {
        let fresh_tools = matches!(listed.tools, Some(Ok(_)));
        let tools = self.tools.refreshed(listed.tools);
        let by_name = if fresh_tools {
            Arc::new(by_name(&tools.items))
        } else {
            Arc::clone(&self.by_name)
        };
        Self {
            tools,
            prompts: self.prompts.refreshed(listed.prompts),
            resources: self.resources.refreshed(listed.resources),
            templates: self.templates.refreshed(listed.templates),
            by_name,
        }
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.items.get(*self.by_name.get(name)?)
    }

    /// What was left out of each list.
    pub(crate) fn flaws(&self) -> [(&'static str, &Arc<[Flaw]>); 4] {
        [
            ("tools", &self.tools.flaws),
            ("prompts", &self.prompts.flaws),
            ("resources", &self.resources.flaws),
            ("resource templates", &self.templates.flaws),
        ]
    }

    pub(crate) fn resources(&self) -> ResourceView {
        let (resources, templates) = (&self.resources, &self.templates);
        ResourceView {
            resources: Arc::clone(&resources.items),
            templates: Arc::clone(&templates.items),
            flaws: resources
                .flaws
                .iter()
                .chain(&*templates.flaws)
                .cloned()
                .collect(),
            generation: resources.generation + templates.generation,
            stale: resources.stale.clone().or_else(|| templates.stale.clone()),
        }
    }
}

fn by_name(tools: &[Tool]) -> HashMap<Box<str>, usize> {
    let mut by_name = HashMap::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        by_name.insert(tool.name.as_ref().into(), index);
    }
    by_name
}

// === impl List ===

impl<T> List<T> {
    /// The list after it was asked for: a good one is taken over, an empty one too; an
    /// error keeps what there is.
    fn refreshed(&self, result: Option<Result<Listing<T>, Failure>>) -> Self {
        let stale = match result {
            Some(Ok(listing)) => {
                return Self {
                    items: listing.items.into(),
                    flaws: listing.flaws.into(),
                    generation: self.generation + 1,
                    stale: None,
                };
            }
            Some(Err(failure)) => Some(failure),
            None => self.stale.clone(),
        };
        Self {
            items: Arc::clone(&self.items),
            flaws: Arc::clone(&self.flaws),
            generation: self.generation,
            stale,
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            items: Arc::new([]),
            flaws: Arc::new([]),
            generation: 0,
            stale: None,
        }
    }
}

// === impl Listed ===

impl Listed {
    /// Tools and prompts are called by their names, so there is one of each.
    pub(crate) fn distinct(self) -> Self {
        let tools = |listed: Result<Listing<Tool>, Failure>| {
            listed.map(|listing| listing.distinct(|tool| &tool.name))
        };
        let prompts = |listed: Result<Listing<Prompt>, Failure>| {
            listed.map(|listing| listing.distinct(|prompt| &prompt.name))
        };
        Self {
            tools: self.tools.map(tools),
            prompts: self.prompts.map(prompts),
            ..self
        }
    }

    /// Why the first of them that could not be had could not be had.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        fn failure<T>(list: &Option<Result<T, Failure>>) -> Option<&Failure> {
            list.as_ref()?.as_ref().err()
        }
        failure(&self.tools)
            .or(failure(&self.prompts))
            .or(failure(&self.resources))
            .or(failure(&self.templates))
    }
}
