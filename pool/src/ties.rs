//! What ties a call to whoever made it.

use std::{fmt, sync::Arc};

use rmcp::model::InputResponses;
use steadfast_classify::Flight;

use crate::{
    ask::Owner,
    progress::{Progress, ProgressSender},
};

/// What ties a call to whoever made it, beside its answer. Most calls have none of it, and
/// pay nothing for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ties {
    /// Where its progress goes.
    pub(crate) progress: Option<Arc<ProgressSender>>,
    /// The flight that whoever limits the call watches, where that is not the one of the
    /// request: a call may take several.
    pub(crate) call: Option<Flight>,
    /// The call, where its session answers questions.
    pub(crate) owner: Option<Arc<Owner>>,
    /// What the server asked last, answered.
    pub(crate) round: Option<Round>,
    /// Which attempt of the call it is.
    pub(crate) attempt: u32,
}

/// What the server asked for when it answered a call, and is told with the next request of
/// the same call.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// The answers, by the keys of the questions; none, where the server only put the call
    /// off.
    pub responses: InputResponses,
    /// What the server wants to be given back, exactly as it came.
    pub state: Option<String>,
}

// === impl Round ===

impl Round {
    pub(crate) const fn new(responses: InputResponses, state: Option<String>) -> Self {
        Self { responses, state }
    }
}

impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Round")
            .field("responses", &self.responses.len())
            .finish_non_exhaustive()
    }
}

// === impl Ties ===

impl Ties {
    /// Passes on what the server told of the call.
    pub(crate) fn report(&self, progress: Progress) {
        if let Some(sender) = &self.progress {
            sender.send(Progress {
                attempt: self.attempt,
                ..progress
            });
        }
    }

    /// Notes a sign of life of the call, be it of a later request of it.
    pub(crate) fn alive(&self) {
        if let Some(call) = &self.call {
            call.progress();
        }
    }
}
