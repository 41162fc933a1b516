//! What a server offers, and what each session sees of it.

mod catalog;
mod flaw;
mod projection;

use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use steadfast_classify::Failure;

pub(crate) use catalog::{Catalog, Listed};
pub use flaw::{Fault, Flaw, Listing};
pub(crate) use projection::{Projection, Projections};

/// The tools that a session sees of a server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ToolView {
    /// The tools that pass the session's filter, in the server's order.
    pub tools: Arc<[Tool]>,
    /// What the server lists and nobody sees, whatever the filter.
    pub flaws: Arc<[Flaw]>,
    /// Grows with every list that was taken over from the server; 0 if there was none yet.
    pub generation: u64,
    /// Why the list could not be had anew, if it could not: then it is an older one.
    pub stale: Option<Failure>,
}

/// The prompts that a session sees of a server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PromptView {
    /// The prompts that pass the session's filter, in the server's order.
    pub prompts: Arc<[Prompt]>,
    /// What the server lists and nobody sees, whatever the filter.
    pub flaws: Arc<[Flaw]>,
    /// Grows with every list that was taken over from the server; 0 if there was none yet.
    pub generation: u64,
    /// Why the list could not be had anew, if it could not: then it is an older one.
    pub stale: Option<Failure>,
}

/// The resources of a server. No filter applies to them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResourceView {
    /// The resources, in the server's order.
    pub resources: Arc<[Resource]>,
    /// The templates of resources, in the server's order.
    pub templates: Arc<[ResourceTemplate]>,
    /// What the server lists and nobody sees.
    pub flaws: Arc<[Flaw]>,
    /// Grows with every list that was taken over from the server; 0 if there was none yet.
    pub generation: u64,
    /// Why a list could not be had anew, if one could not: then it is an older one.
    pub stale: Option<Failure>,
}
