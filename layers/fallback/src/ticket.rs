//! What the chain remembers of one call.

use std::{fmt, sync::Arc};

use steadfast_classify::{Failure, Recoverable, Source};
use tokio::time::Instant;

use crate::{
    Key, Mark, Recovering, Settings, Store, Ticket, covers,
    handle::Shared,
    recovery::{Last, Limit},
    rules::{Role, role, wait_until},
};

/// Accompanies one call for a [`Chain`](crate::Chain).
#[must_use = "dropping it counts as a call that may have run"]
pub struct ChainTicket<St: Store, M> {
    mark: M,
    part: Part<St>,
    default: Option<Arc<St::Value>>,
    deadline: Option<Instant>,
}

/// What a call means to the store.
pub(crate) enum Part<St: Store> {
    /// Nothing is kept or given at all.
    Off,
    Nothing(Shared<St>),
    /// Boxed: the only kind of call that is large, and one whose answer is copied anyway.
    Keep(Shared<St>, Box<Asked>),
    Raise(Raise<St>),
}

pub(crate) struct Asked {
    key: Key,
    /// Read when the call began: an answer that a write overtook is not kept.
    generation: u64,
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
        mark: M,
        part: Part<St>,
        default: Option<Arc<St::Value>>,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
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
            Part::Off | Part::Nothing(_) => {}
            // Before it is tagged: what is kept has no source of its own yet.
            Part::Keep(store, asked) => {
                if !self.mark.is_error(value) {
                    store.put(asked.key, asked.generation, value);
                }
            }
            Part::Raise(raise) => drop(raise),
        }
        self.mark.tag(value, &Source::Live, None);
    }

    fn recover(self, failure: &Failure) -> Option<Recovering<St, M>> {
        let covered = covers(failure);
        let (settings, lookup) = match self.part {
            Part::Off => return None,
            Part::Nothing(store) => (store.settings(), None),
            // The generation of now, not of the call's begin: an answer from before a
            // write is not given out after it.
            Part::Keep(store, asked) => {
                let generation = store.generation(asked.key.server());
                let lookup = covered.then(|| store.lookup(asked.key, generation));
                (store.settings(), lookup)
            }
            Part::Raise(raise) => (raise.settle(failure), None),
        };
        covered.then(|| {
            let until = wait_until(Instant::now(), settings.lookup_limit, self.deadline);
            let last = Last::new(self.mark, self.default, settings, failure.clone());
            Recovering::new(lookup, Limit::new(until), last)
        })
    }
}

impl<St: Store, M> fmt::Debug for ChainTicket<St, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match &self.part {
            Part::Off => "off",
            Part::Nothing(_) => "nothing",
            Part::Keep(..) => "keep",
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
    pub(crate) fn new<R: Recoverable<St::Value>>(store: Shared<St>, request: &R) -> Self {
        let Some(server) = request.server() else {
            return Self::Nothing(store);
        };
        match role(request.effect(), request.cacheable()) {
            Role::Nothing => Self::Nothing(store),
            Role::Raise => Self::Raise(Raise {
                store,
                server: Some(Arc::clone(server)),
            }),
            Role::Keep => match request.question() {
                None => Self::Nothing(store),
                Some(question) => {
                    let generation = store.generation(server);
                    let key = Key::new(Arc::clone(server), question);
                    Self::Keep(store, Box::new(Asked { key, generation }))
                }
            },
        }
    }
}

// === impl Raise ===

impl<St: Store> Raise<St> {
    /// A call that certainly did not run has made nothing stale.
    fn settle(mut self, failure: &Failure) -> Settings {
        if !failure.may_have_run() {
            self.server = None;
        }
        self.store.settings()
    }
}

impl<St: Store> Drop for Raise<St> {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            self.store.raise(server);
        }
    }
}
