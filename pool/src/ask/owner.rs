//! The call that a question is about.

use std::{fmt, sync::Arc};

use steadfast_classify::Flight;
use tokio_util::sync::CancellationToken;

use super::{AskHandler, Asking, Host};
use crate::seat::Scope;

/// A call of a session that answers questions.
pub(crate) struct Owner {
    pub(super) scope: Arc<Scope>,
    pub(super) handler: Arc<dyn AskHandler>,
    pub(super) asking: Asking,
    pub(super) flight: Flight,
    /// Cancelled when the call has ended, however.
    pub(super) over: CancellationToken,
}

/// A call that runs: questions about it come to its session until this is dropped.
#[derive(Debug)]
pub(crate) struct Owned {
    owner: Arc<Owner>,
    host: Host,
}

// === impl Owner ===

impl Owner {
    /// A call to `tool`, if its session answers questions. `flight` is what whoever limits
    /// the call watches.
    pub(crate) fn new(
        scope: &Arc<Scope>,
        server: &Arc<str>,
        tool: &Arc<str>,
        flight: &Flight,
    ) -> Option<Arc<Self>> {
        let handler = scope.handler()?;
        Some(Arc::new(Self {
            asking: Asking {
                session: Arc::clone(scope.id()),
                server: Arc::clone(server),
                tool: Some(Arc::clone(tool)),
            },
            scope: Arc::clone(scope),
            handler,
            flight: flight.clone(),
            over: CancellationToken::new(),
        }))
    }

    pub(crate) const fn handler(&self) -> &Arc<dyn AskHandler> {
        &self.handler
    }

    pub(crate) const fn asking(&self) -> &Asking {
        &self.asking
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner")
            .field("asking", &self.asking)
            .finish_non_exhaustive()
    }
}

// === impl Owned ===

impl Owned {
    /// Questions over a connection that only this session has may be about this call.
    pub(crate) fn new(owner: Arc<Owner>, host: &Host) -> Self {
        host.add_call(&owner);
        Self {
            owner,
            host: host.clone(),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.owner.over.cancel();
        self.host.remove_call(&self.owner);
    }
}
