//! The circuits of a keyed breaker: bounded, and one that is in use never goes.

use std::{
    collections::HashMap,
    fmt::Debug,
    hash::Hash,
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Breaker, Settings, Snapshot, event, shared::Shared, state::Label};

/// The circuits of a keyed breaker.
#[derive(Debug)]
pub(crate) struct Registry<K> {
    name: Arc<str>,
    settings: Arc<Settings>,
    table: Mutex<Table<K>>,
    /// The one circuit of all keys for which there is no room.
    overflow: OnceLock<Arc<Breaker>>,
}

#[derive(Debug)]
struct Table<K> {
    index: HashMap<K, usize>,
    slots: Vec<Slot<K>>,
    /// Where the search for a circuit to evict goes on.
    hand: usize,
    /// Nothing could be evicted, and this is not tried again before.
    full_until: Option<Instant>,
}

#[derive(Debug)]
struct Slot<K> {
    key: K,
    /// What calls go by: a hold on the circuit that does not keep it here.
    breaker: Arc<Breaker>,
    /// More than this one count is a handle that somebody has.
    pin: Arc<()>,
}

/// What became of a circuit that was to be put into the table.
enum Inserted<K> {
    /// It is in, and the table has become larger.
    New,
    /// It is in, and this one is out.
    For(Slot<K>),
    /// Another was faster.
    There,
    /// There is no room.
    Full,
}

/// How long a table that has room for nothing is left alone: a search goes through all of
/// it, and no call should pay for one.
const REST: Duration = Duration::from_secs(1);

// === impl Registry ===

impl<K> Registry<K> {
    pub(crate) fn new(name: Arc<str>, settings: Settings) -> Self {
        Self {
            name,
            settings: Arc::new(settings),
            table: Mutex::new(Table {
                index: HashMap::new(),
                slots: Vec::new(),
                hand: 0,
                full_until: None,
            }),
            overflow: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The circuit that keys share for which there is no room.
    pub(crate) fn overflow(&self) -> Arc<Breaker> {
        let breaker = self
            .overflow
            .get_or_init(|| self.circuit("(any other)".into()));
        Arc::clone(breaker)
    }

    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        let breakers: Vec<_> = self
            .lock()
            .slots
            .iter()
            .map(|slot| Arc::clone(&slot.breaker))
            .chain(self.overflow.get().cloned())
            .collect();
        breakers.iter().map(|breaker| breaker.snapshot()).collect()
    }

    fn circuit(&self, key: Arc<str>) -> Arc<Breaker> {
        let label = Label {
            name: Arc::clone(&self.name),
            key: Some(key),
        };
        let shared = Shared::new(label, Arc::clone(&self.settings));
        Arc::new(Breaker::of_keyed(Arc::new(shared)))
    }

    fn lock(&self) -> MutexGuard<'_, Table<K>> {
        // Nothing of the user's runs under the lock but `Hash` and `Eq` of a key, and a
        // table is whole again after a panic in them, but for a circuit that nobody finds.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone + Debug> Registry<K> {
    /// The circuit of this key, for one who is going to use it now; `None` if there is no
    /// room for it.
    pub(crate) fn find(&self, key: &K) -> Option<Arc<Breaker>> {
        self.find_slot(key, |slot| Arc::clone(&slot.breaker))
    }

    /// The circuit of this key, to stay as long as there are handles of it.
    pub(crate) fn pin(&self, key: &K) -> Option<Breaker> {
        self.find_slot(key, |slot| slot.breaker.pinned(&slot.pin))
    }

    /// What the circuit of this key looks like, if it has one.
    pub(crate) fn snapshot(&self, key: &K) -> Option<Snapshot> {
        let table = self.lock();
        let slot = &table.slots[*table.index.get(key)?];
        let breaker = Arc::clone(&slot.breaker);
        drop(table);
        Some(breaker.snapshot())
    }

    fn find_slot<T>(&self, key: &K, take: impl Fn(&Slot<K>) -> T) -> Option<T> {
        let table = self.lock();
        let found = table.get(key).map(&take);
        if found.is_some() || table.is_full_at(Instant::now()) {
            return found;
        }
        drop(table);
        let slot = Slot {
            key: key.clone(),
            breaker: self.circuit(format!("{key:?}").into()),
            pin: Arc::new(()),
        };
        let mut table = self.lock();
        let inserted = match table.get(key) {
            Some(_) => Inserted::There,
            None => table.insert(slot, self.settings.max_keys),
        };
        let found = table.get(key).map(&take);
        // Whoever listens, and what is dropped, has nothing to do under the lock.
        drop(table);
        if let Inserted::Full = inserted {
            event::overflowed(&self.name, self.settings.max_keys);
        }
        found
    }
}

// === impl Table ===

impl<K: Eq + Hash + Clone> Table<K> {
    fn get(&self, key: &K) -> Option<&Slot<K>> {
        let slot = &self.slots[*self.index.get(key)?];
        slot.breaker.shared().touch();
        Some(slot)
    }

    fn is_full_at(&self, now: Instant) -> bool {
        self.full_until.is_some_and(|until| now < until)
    }

    /// Puts a circuit in, at the place of another if there is no room.
    fn insert(&mut self, slot: Slot<K>, max_keys: usize) -> Inserted<K> {
        let key = slot.key.clone();
        if self.slots.len() < max_keys {
            self.index.insert(key, self.slots.len());
            self.slots.push(slot);
            return Inserted::New;
        }
        let Some(place) = self.evict() else {
            self.full_until = Some(Instant::now() + REST);
            return Inserted::Full;
        };
        let old = mem::replace(&mut self.slots[place], slot);
        self.index.remove(&old.key);
        self.index.insert(key, place);
        Inserted::For(old)
    }

    /// Retires a circuit: a closed one, and one that was not used for a whole round of the
    /// hand before one that was; where none is closed, one that has waited for its probe
    /// since its open time was over, or it would stay for ever if nobody calls it again.
    fn evict(&mut self) -> Option<usize> {
        let mut overdue = None;
        for _ in 0..2 * self.slots.len() {
            let place = self.hand;
            self.hand = (place + 1) % self.slots.len();
            let slot = &self.slots[place];
            let shared = slot.breaker.shared();
            if Arc::strong_count(&slot.pin) > 1 {
                continue;
            }
            if !shared.is_closed() {
                overdue = overdue.or_else(|| shared.is_overdue().then_some(place));
            } else if !shared.take_touch() && shared.retire(false) {
                return Some(place);
            }
        }
        overdue.filter(|place| self.slots[*place].breaker.shared().retire(true))
    }
}
