//! One limit for all calls.

use std::sync::Arc;

use crate::{
    Admit, Limit, Patience, Place, Verdict,
    bucket::Bucket,
    gate::{Gate, Owner},
};

/// One limit for all calls.
///
/// It is a handle: its clones, and the services that any layer made of them, share one
/// bucket.
#[derive(Clone, Debug)]
pub struct Global {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gate: Gate,
    bucket: Arc<Bucket>,
}

// === impl Global ===

impl Global {
    /// Limits all calls together.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let bucket = Arc::new(Bucket::new(limit.quota()));
        let gate = Gate::new(limit);
        Self {
            shared: Arc::new(Shared { gate, bucket }),
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
        if bucket.take() {
            return Verdict::Admitted;
        }
        gate.arrive(bucket, place, patience, Owner::default)
    }
}
