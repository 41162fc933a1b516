//! One limit for all calls.

use std::{fmt, sync::Arc};

use crate::{
    Admit, Limit, Patience, Place, Verdict,
    bucket::Bucket,
    gate::{Gate, Owner},
};

/// One limit for all calls.
///
/// It is a handle: its clones, and the services that any layer made of them, share one
/// bucket.
#[derive(Clone)]
pub struct Global {
    shared: Arc<Shared>,
}

struct Shared {
    gate: Gate,
    bucket: Arc<Bucket>,
}

// === impl Global ===

impl Global {
    /// Limits all calls together.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let shared = Shared {
            gate: Gate::new(limit),
            bucket: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        self.shared.gate.limit()
    }
}

impl<R> Admit<R> for Global {
    type Ticket = Place;

    fn admit(&self, _: &R, place: &mut Place, patience: Patience<'_>) -> Verdict {
        let Shared { gate, bucket } = &*self.shared;
        if let Some(verdict) = gate.recheck(place, patience, Owner::default) {
            return verdict;
        }
        if gate.meter().take(bucket) {
            return Verdict::Admitted;
        }
        gate.arrive(bucket, place, patience, Owner::default)
    }
}

impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global")
            .field("limit", self.limit())
            .finish_non_exhaustive()
    }
}
