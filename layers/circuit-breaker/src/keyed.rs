//! A circuit for each key.

use std::{fmt, hash::Hash, sync::Arc};

use steadfast_classify::Failure;

use crate::{
    Breaker, Settings, Snapshot,
    registry::Registry,
    select::Admit,
    ticket::{Admitted, Seat, Ticket},
};

/// A circuit for each key that `F` finds in a request: a server, a tool, a tenant.
///
/// Circuits are made on demand, and at most [`Settings::max_keys`] are kept. When there is
/// no room for another, a closed one goes, and one that was not used for long goes first.
/// Where none is closed, one goes whose open time has passed without anybody calling again.
/// One that turns calls away never goes, nor one of which somebody has a handle; if that
/// leaves nothing, new keys share one circuit until there is room, and a warning says so.
///
/// Each service remembers the circuit it used last, and finds it again without a lock.
pub struct Keyed<K, F> {
    registry: Arc<Registry<K>>,
    key: F,
    last: Option<(K, Seat)>,
}

// === impl Keyed ===

impl<K, F> Keyed<K, F> {
    pub(crate) fn new(name: Arc<str>, settings: Settings, key: F) -> Self {
        Self {
            registry: Arc::new(Registry::new(name, settings)),
            key,
            last: None,
        }
    }

    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        self.registry.snapshots()
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, F> Keyed<K, F> {
    pub(crate) fn breaker(&self, key: &K) -> Option<Breaker> {
        self.registry.pin(key)
    }

    pub(crate) fn snapshot(&self, key: &K) -> Option<Snapshot> {
        self.registry.snapshot(key)
    }

    /// By the circuit that was used last, if it is the key's.
    fn admit_by_last(&mut self, key: &K) -> Admitted {
        match &mut self.last {
            Some((last, seat)) if last == key => {
                seat.breaker().shared().touch();
                seat.admit()
            }
            _ => Admitted::Retired,
        }
    }
}

impl<R, K, F> Admit<R> for Keyed<K, F>
where
    K: Eq + Hash + Clone + fmt::Debug,
    F: Fn(&R) -> K,
{
    fn admit(&mut self, request: &R) -> Result<Ticket, Failure> {
        let key = (self.key)(request);
        let mut admitted = self.admit_by_last(&key);
        loop {
            match admitted {
                Admitted::In(ticket) => return Ok(ticket),
                Admitted::Away(open) => return Err(open),
                // It was evicted, also between being found and being asked.
                Admitted::Retired => {}
            }
            admitted = match self.registry.find(&key) {
                Some(breaker) => {
                    self.last = Some((key.clone(), Seat::borrowed(breaker)));
                    self.admit_by_last(&key)
                }
                // Not remembered: the next call may find room.
                None => Seat::borrowed(self.registry.overflow()).admit(),
            };
        }
    }
}

impl<K: Clone, F: Clone> Clone for Keyed<K, F> {
    fn clone(&self) -> Self {
        Self {
            registry: Arc::clone(&self.registry),
            key: self.key.clone(),
            last: self.last.clone(),
        }
    }
}

impl<K, F> fmt::Debug for Keyed<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed")
            .field("name", self.registry.name())
            .finish_non_exhaustive()
    }
}
