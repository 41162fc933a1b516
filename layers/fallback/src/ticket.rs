//! What the chain remembers of one call.

use std::{fmt, sync::Arc};

use steadfast_classify::{Failure, Question, Source};
use tokio::time::Instant;

use crate::{
    Key, Mark, Recovering, Settings, Store, Ticket, covers,
    handle::Shared,
    recovery::{Last, Limit},
    rules::wait_until,
};

/// Accompanies one call for a [`Chain`](crate::Chain).
#[must_use = "dropping it counts as a call that may have run"]
pub struct ChainTicket<St: Store, M> {
    settings: Settings,
    mark: M,
    part: Part<St>,
    default: Option<Arc<St::Value>>,
    deadline: Option<Instant>,
}

/// What a call means to the store.
pub(crate) enum Part<St: Store> {
    Nothing,
    Keep {
        store: Shared<St>,
        key: Key,
        /// Read when the call began: an answer that a write overtook is not kept.
        generation: u64,
    },
    Raise(Raise<St>),
}

/// A call that may change what its server would answer. Dropped, it makes stale what is
/// kept of that server, so neither an end nor a cancel nor a panic gets past it.
pub(crate) struct Raise<St: Store> {
    store: Shared<St>,
    /// `None` once it is known that the call did not run.
    server: Option<Arc<str>>,
}

// === impl ChainTicket ===

impl<St: Store, M> ChainTicket<St, M> {
    pub(crate) const fn new(
        settings: Settings,
        mark: M,
        part: Part<St>,
        default: Option<Arc<St::Value>>,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            settings,
            mark,
            part,
            default,
            deadline,
        }
    }
}

impl<St, M> Ticket<St::Value> for ChainTicket<St, M>
where
    St: Store,
    St::Value: Clone,
    M: Mark<St::Value>,
{
    type Recovery = Recovering<St, M>;

    fn finish(self, value: &mut St::Value) {
        match self.part {
            Part::Nothing => {}
            Part::Keep {
                store,
                key,
                generation,
            } => {
                // Before it is tagged: what is kept has no source of its own yet.
                if !self.mark.is_error(value) {
                    store.put(key, generation, value);
                }
            }
            Part::Raise(raise) => drop(raise),
        }
        self.mark.tag(value, &Source::Live, None);
    }

    fn recover(self, failure: &Failure) -> Option<Recovering<St, M>> {
        let covered = self.settings.enabled && covers(failure);
        let lookup = match self.part {
            Part::Nothing => None,
            // The generation of now, not of the call's begin: an answer from before a
            // write is not given out after it.
            Part::Keep { store, key, .. } => covered.then(|| {
                let generation = store.generation(key.server());
                store.lookup(key, generation)
            }),
            Part::Raise(raise) => {
                raise.settle(failure);
                None
            }
        };
        covered.then(|| {
            let now = Instant::now();
            let until = wait_until(now, self.settings.lookup_limit, self.deadline);
            let last = Last::new(self.mark, self.default, self.settings, failure.clone());
            Recovering::new(lookup, Limit::new(until), last)
        })
    }
}

impl<St: Store, M> fmt::Debug for ChainTicket<St, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match &self.part {
            Part::Nothing => "nothing",
            Part::Keep { .. } => "keep",
            Part::Raise(_) => "raise",
        };
        f.debug_struct("ChainTicket")
            .field("part", &part)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

// === impl Part ===

impl<St: Store> Part<St> {
    pub(crate) fn keep(store: Shared<St>, server: Arc<str>, question: Question) -> Self {
        Self::Keep {
            generation: store.generation(&server),
            key: Key::new(server, question),
            store,
        }
    }

    pub(crate) const fn raise(store: Shared<St>, server: Arc<str>) -> Self {
        Self::Raise(Raise {
            store,
            server: Some(server),
        })
    }
}

// === impl Raise ===

impl<St: Store> Raise<St> {
    /// A call that certainly did not run has made nothing stale.
    fn settle(mut self, failure: &Failure) {
        if !failure.may_have_run() {
            self.server = None;
        }
    }
}

impl<St: Store> Drop for Raise<St> {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            self.store.raise(server);
        }
    }
}
