//! What ties a call to whoever made it.

use std::sync::Arc;

use steadfast_classify::Flight;

use crate::progress::{Progress, ProgressSender};

/// What ties a call to whoever made it, beside its answer. Most calls have none of it, and
/// pay nothing for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ties {
    /// Where its progress goes.
    pub(crate) progress: Option<Arc<ProgressSender>>,
    /// The flight that whoever limits the call watches, where that is not the one of the
    /// request: a call may take several.
    pub(crate) call: Option<Flight>,
    /// Which attempt of the call it is.
    pub(crate) attempt: u32,
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
