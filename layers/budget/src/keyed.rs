//! One limit per key.

use std::{
    fmt,
    hash::Hash,
    num::NonZeroUsize,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::time::Instant;

use crate::{
    Admit, Limit, Patience, Place, Then, Verdict,
    bucket::Bucket,
    episode::Episode,
    gate::{Gate, Owner},
    keys::Keys,
    observe,
};

/// One limit per key: each session, server or tool has a bucket of its own.
///
/// It is a handle: its clones, and the services that any layer made of them, share their
/// buckets.
///
/// A key that was not used for so long that its bucket has been full for a minute is
/// dropped when new ones come, and when there is no room for those, as soon as it is
/// full; never before, so that no key gains by it. With
/// [`max_keys`](Self::with_max_keys) in use, further keys share one bucket more, so that
/// they are limited too. Such a key is let through at most twice as often as its quota
/// says, once by the shared bucket and once by its own.
pub struct Keyed<K, F> {
    shared: Arc<Shared<K, F>>,
    max_keys: NonZeroUsize,
    label: Option<fn(&K) -> Arc<str>>,
}

struct Shared<K, F> {
    gate: Gate,
    key: F,
    keys: RwLock<Keys<K>>,
    /// What the keys share for which there is no room.
    overflow: Arc<Bucket>,
    overflows: Episode,
}

/// More sessions, servers or tools than one host has; all of them together take about a
/// megabyte.
const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not zero");

// === impl Keyed ===

impl<K, F> Keyed<K, F>
where
    K: Hash + Eq + Clone,
{
    /// Limits the calls of each key, which `key` finds in a request.
    ///
    /// A key is looked up for each call, so it should be cheap to make: a number, or an
    /// `Arc<str>`.
    #[must_use]
    pub fn new<R>(limit: Limit, key: F) -> Self
    where
        F: Fn(&R) -> K,
    {
        let shared = Shared {
            gate: Gate::new(limit),
            key,
            keys: RwLock::new(Keys::new()),
            overflow: Arc::default(),
            overflows: Episode::new(Instant::now()),
        };
        Self {
            shared: Arc::new(shared),
            max_keys: MAX_KEYS,
            label: None,
        }
    }

    /// Sets how many keys have a bucket of their own. Default: 4096, more than one host
    /// has of anything, and about a megabyte.
    #[must_use]
    pub fn with_max_keys(mut self, max: NonZeroUsize) -> Self {
        self.max_keys = max;
        self
    }

    /// Shows the key in rejections and events. Not done by default: a key may be a
    /// secret.
    #[must_use]
    pub fn with_shown_keys(mut self) -> Self
    where
        K: fmt::Display,
    {
        self.label = Some(|key| Arc::from(key.to_string()));
        self
    }

    /// Adds the limit that a call has to pass after this one: another keyed one, or the
    /// global one, after which there is none.
    #[must_use]
    pub fn then<N>(self, next: N) -> Then<Self, N> {
        Then::new(self, next)
    }

    /// The settings it was made with.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        self.shared.gate.limit()
    }

    /// How many keys have a bucket of their own just now.
    #[must_use]
    pub fn keys(&self) -> usize {
        let keys = self.shared.keys.read();
        keys.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes a call of this key, or returns the bucket that has none.
    fn take(&self, key: &K) -> Result<(), Arc<Bucket>> {
        let meter = self.shared.gate.meter();
        let take = |bucket: &Arc<Bucket>| match meter.take(bucket) {
            true => Ok(()),
            false => Err(Arc::clone(bucket)),
        };
        let keys = self.shared.keys.read();
        if let Some(bucket) = keys.unwrap_or_else(PoisonError::into_inner).get(key) {
            return take(bucket);
        }
        let keys = self.shared.keys.write();
        let mut keys = keys.unwrap_or_else(PoisonError::into_inner);
        let (max, now) = (self.max_keys.get(), Instant::now());
        if let Some(bucket) = keys.enter(key.clone(), max, now, meter) {
            return take(bucket);
        }
        drop(keys);
        let begins = self.shared.overflows.begins(now);
        observe::overflowed(self.limit(), max, begins);
        take(&self.shared.overflow)
    }

    fn owner(&self, key: impl FnOnce() -> K, bucket: Option<&Arc<Bucket>>) -> Owner {
        Owner {
            key: self.label.map(|label| label(&key())),
            overflow: bucket.is_some_and(|bucket| Arc::ptr_eq(bucket, &self.shared.overflow)),
        }
    }
}

impl<R, K, F> Admit<R> for Keyed<K, F>
where
    K: Hash + Eq + Clone,
    F: Fn(&R) -> K,
{
    type Ticket = Place;

    fn admit(&self, request: &R, place: &mut Place, patience: Patience<'_>) -> Verdict {
        let key = || (self.shared.key)(request);
        let gate = &self.shared.gate;
        if let Some((waited_for, _)) = place.get().cloned() {
            let owner = || self.owner(key, Some(&waited_for));
            if let Some(verdict) = gate.recheck(place, patience, owner) {
                return verdict;
            }
        }
        let key = key();
        match self.take(&key) {
            Ok(()) => Verdict::Admitted,
            Err(bucket) => {
                let owner = || self.owner(|| key, Some(&bucket));
                gate.arrive(&bucket, place, patience, owner)
            }
        }
    }
}

impl<K, F> Clone for Keyed<K, F> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            max_keys: self.max_keys,
            label: self.label,
        }
    }
}

impl<K, F> fmt::Debug for Keyed<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No keys: they may be secrets.
        f.debug_struct("Keyed")
            .field("limit", self.shared.gate.limit())
            .field("max_keys", &self.max_keys)
            .finish_non_exhaustive()
    }
}
