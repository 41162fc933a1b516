//! The last good list of a server's tools.

use std::sync::Arc;

use rmcp::model::Tool;
use steadfast_classify::Failure;

/// An immutable list of tools, as the server last gave it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Arc<[Tool]>,
    /// Grows with every list that was taken over; 0 before the first.
    pub(crate) generation: u64,
    /// Why the list could not be had anew, if it could not: what there is is old.
    pub(crate) stale: Option<Failure>,
}

// === impl ToolList ===

impl ToolList {
    /// The list after a refresh: a good one is taken over, an empty one too; an error
    /// keeps what there is.
    pub(crate) fn refreshed(&self, result: Result<Vec<Tool>, Failure>) -> Self {
        match result {
            Ok(tools) => Self {
                tools: tools.into(),
                generation: self.generation + 1,
                stale: None,
            },
            Err(failure) => Self {
                stale: Some(failure),
                ..self.clone()
            },
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
