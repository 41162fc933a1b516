//! What a tool call does, by the word of whoever may be believed.

use rmcp::model::ToolAnnotations;
use steadfast_classify::Effect;

/// What a tool says about itself in its annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolHints {
    /// `readOnlyHint`.
    pub read_only: bool,
    /// `destructiveHint`.
    pub destructive: bool,
    /// `idempotentHint`.
    pub idempotent: bool,
}

// === impl ToolHints ===

impl ToolHints {
    /// The effect these hints promise.
    ///
    /// Read-only *and* destructive contradict each other; only `idempotentHint` then
    /// still says that repeating is harmless, and the answer is not kept. An absent
    /// `destructiveHint` is no contradiction, although its default is true: the
    /// specification gives it a meaning only beside `readOnlyHint: false`.
    #[must_use]
    pub const fn effect(self) -> Effect {
        match (self.read_only, self.destructive, self.idempotent) {
            (true, false, _) => Effect::ReadOnly,
            (_, _, true) => Effect::Idempotent,
            (_, _, false) => Effect::NonIdempotent,
        }
    }
}

impl From<&ToolAnnotations> for ToolHints {
    fn from(annotations: &ToolAnnotations) -> Self {
        Self {
            read_only: annotations.read_only_hint == Some(true),
            destructive: annotations.destructive_hint == Some(true),
            idempotent: annotations.idempotent_hint == Some(true),
        }
    }
}
