//! Good answers in memory.

use std::{
    fmt,
    future::{Ready, ready},
    mem::size_of,
    sync::Arc,
};

use moka::{ops::compute::Op, policy::EvictionPolicy, sync::Cache};
use tokio::time::Instant;

use crate::{Bounds, Generations, InvalidBounds, Kept, Key, Store, event};

/// Keeps good answers in this process, bounded by number and by bytes; the one not used
/// for longest goes first. A clone is the same store.
///
/// Ages are measured by tokio's clock, and looking is never waiting.
pub struct Memory<T> {
    entries: Cache<Key, Arc<Entry<T>>>,
    generations: Arc<Generations>,
    weigh: fn(&T) -> usize,
    bounds: Bounds,
}

struct Entry<T> {
    value: T,
    generation: u64,
    at: Instant,
    weight: u32,
}

// === impl Memory ===

impl<T: Send + Sync + 'static> Memory<T> {
    /// An empty store. `weigh` says how many bytes an answer takes, its heap included.
    ///
    /// # Errors
    ///
    /// If a bound cannot be; the error names it and what is allowed.
    pub fn new(bounds: Bounds, weigh: fn(&T) -> usize) -> Result<Self, InvalidBounds> {
        bounds.check()?;
        Ok(Self::checked(bounds, weigh))
    }

    /// An empty store with the default bounds, which are valid.
    #[must_use]
    pub fn standard(weigh: fn(&T) -> usize) -> Self {
        Self::checked(Bounds::new(), weigh)
    }

    fn checked(bounds: Bounds, weigh: fn(&T) -> usize) -> Self {
        let entries = Cache::builder()
            .max_capacity(bounds.max_bytes())
            // By recency alone: what a write made stale was asked for often, and a
            // policy that counts uses would keep it and turn away its successor.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_, entry: &Arc<Entry<T>>| entry.weight)
            .build();
        Self {
            entries,
            generations: Arc::default(),
            weigh,
            bounds,
        }
    }

    /// How many answers it keeps at the moment, stale ones included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.entries.run_pending_tasks();
        self.entries.entry_count()
    }

    /// Whether it keeps none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.entries.invalidate_all();
    }
}

impl<T: Clone + Send + Sync + 'static> Store for Memory<T> {
    type Value = T;
    type Lookup = Ready<Option<Kept<T>>>;

    fn generation(&self, server: &str) -> u64 {
        self.generations.get(server)
    }

    fn raise(&self, server: &str) {
        self.generations.raise(server);
    }

    fn put(&self, key: Key, generation: u64, value: &T) {
        let bytes = (self.weigh)(value)
            .saturating_add(key.bytes())
            .saturating_add(size_of::<Key>() + size_of::<Entry<T>>());
        let Some(weight) = self.bounds.weight(bytes) else {
            event::too_large(key.server(), key.operation(), bytes);
            return;
        };
        let entry = Arc::new(Entry {
            value: value.clone(),
            generation,
            at: Instant::now(),
            weight,
        });
        let server = key.shared_server();
        // Asked while the key is held: if no write has overtaken this answer by now,
        // then no answer of a later generation is there either.
        self.entries.entry(key).and_compute_with(|_| {
            if generation == self.generation(&server) {
                Op::Put(entry)
            } else {
                Op::Nop
            }
        });
        // Not left for later: sixty large answers above the bound are too many.
        self.entries.run_pending_tasks();
    }

    fn lookup(&self, key: Key, generation: u64) -> Self::Lookup {
        let entry = self.entries.get(&key);
        let current = entry.filter(|entry| entry.generation == generation);
        ready(current.map(|entry| Kept::new(entry.value.clone(), entry.at.elapsed())))
    }
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            generations: Arc::clone(&self.generations),
            weigh: self.weigh,
            bounds: self.bounds,
        }
    }
}

/// Never prints an answer.
impl<T> fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
