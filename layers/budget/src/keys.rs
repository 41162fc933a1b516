//! A bounded set of buckets, one per key.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::{bucket::Bucket, clock::later, meter::Meter};

/// How many keys a new one may look at to find some that are idle. Two would do to drop
/// them faster than new ones come; a few more make a full set find room sooner.
const SWEEP: usize = 4;

/// How long a key is kept after its bucket is full, while there is room. Without it, keys
/// that are used now and then would be dropped and entered again all the time.
const IDLE: Duration = Duration::from_secs(60);

/// When a key that somebody waits for is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// One bucket per key.
///
/// A key may be dropped when its bucket is full, and only then: it is as good as a new
/// one, so nobody gets anything by being dropped. governor itself drops none. The keys
/// are ordered by the earliest time at which they can be full, so to find one, or to
/// know that there is none, takes a look at the first.
#[derive(Debug)]
pub(crate) struct Keys<K> {
    buckets: HashMap<K, Arc<Bucket>>,
    /// One for each key, the earliest on top.
    due: BinaryHeap<Due<K>>,
}

/// The earliest time at which a key's bucket can be full.
#[derive(Debug)]
struct Due<K> {
    at: Instant,
    key: K,
}

// === impl Keys ===

impl<K> Keys<K> {
    pub(crate) fn new() -> Self {
        Self {
            buckets: HashMap::new(),
            due: BinaryHeap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}

impl<K> Keys<K>
where
    K: Hash + Eq + Clone,
{
    pub(crate) fn get(&self, key: &K) -> Option<&Arc<Bucket>> {
        self.buckets.get(key)
    }

    /// The bucket of a key that comes at `now`, a full one if it is new. `None` if it is
    /// new and there is no room.
    pub(crate) fn enter(
        &mut self,
        key: K,
        max: usize,
        now: Instant,
        meter: &Meter,
    ) -> Option<&Arc<Bucket>> {
        let is_new = !self.buckets.contains_key(&key);
        if is_new {
            self.sweep(IDLE, now, meter);
            if self.buckets.len() >= max {
                self.sweep(Duration::ZERO, now, meter);
            }
            if self.buckets.len() >= max {
                return None;
            }
        }
        let key_again = is_new.then(|| key.clone());
        let bucket = self.buckets.entry(key).or_default();
        // Last, so that a key whose hash panics has not entered by halves.
        self.due.extend(key_again.map(|key| Due { at: now, key }));
        Some(bucket)
    }

    /// Looks at a few keys that can have been full for `idle`, and drops those that are.
    fn sweep(&mut self, idle: Duration, now: Instant, meter: &Meter) {
        for _ in 0..SWEEP {
            let can_be = |first: &Due<K>| later(first.at, idle) <= now;
            if !self.due.peek().is_some_and(can_be) {
                return;
            }
            let Some(mut due) = self.due.pop() else {
                return;
            };
            match self.full_at(&due.key, now, meter) {
                Some(at) if later(at, idle) > now => {
                    due.at = at;
                    self.due.push(due);
                }
                Some(_) | None => drop(self.buckets.remove(&due.key)),
            }
        }
    }

    /// Since when, or from when on, the key may be dropped.
    fn full_at(&self, key: &K, now: Instant, meter: &Meter) -> Option<Instant> {
        let bucket = self.buckets.get(key)?;
        let full_at = meter.full_at(bucket);
        if Arc::strong_count(bucket) == 1 {
            return Some(full_at);
        }
        // Somebody waits for it, and would be left with a bucket that nobody else sees.
        Some(full_at.max(later(now, LOOK_AGAIN)))
    }
}

// === impl Due ===

impl<K> PartialEq for Due<K> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<K> Eq for Due<K> {}

impl<K> PartialOrd for Due<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Due<K> {
    /// The earliest is the greatest, since a heap has that on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_key_looks_at_few_others_however_many_are_idle() {
        let meter = Meter::new("1/s".parse().unwrap());
        let mut keys = Keys::new();
        for key in 0..1_000 {
            keys.enter(key, 10_000, Instant::now(), &meter).unwrap();
        }
        tokio::time::advance(IDLE).await;

        for entered in 1..=100 {
            keys.enter(1_000 + entered, 10_000, Instant::now(), &meter);
            assert_eq!(keys.len(), 1_000 + entered - entered * SWEEP);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_in_use_is_kept_while_there_is_room_and_an_idle_one_for_a_minute() {
        let meter = Meter::new("1/s".parse().unwrap());
        let mut keys = Keys::new();
        let mut use_key = |key| {
            let bucket = keys.enter(key, 100, Instant::now(), &meter).unwrap();
            assert!(meter.take(bucket));
            let now = |key| keys.get(&key).is_some();
            [now(1), now(2)]
        };

        // The first one once, the second one every five seconds.
        assert_eq!(use_key(1), [true, false]);
        for second in (0..60).step_by(5) {
            assert_eq!(use_key(2), [true, true], "after {second} s");
            assert_eq!(use_key(100 + second), [true, true], "after {second} s");
            tokio::time::advance(Duration::from_secs(5)).await;
        }
        // It has been full since the first second.
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(use_key(200), [true, true]);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(use_key(201), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_key_is_due_once() {
        let meter = Meter::new("1/s".parse().unwrap());
        let mut keys = Keys::new();

        // Keys that are used again and again, dropped, and entered anew.
        for round in 0..2_000_u64 {
            let key = round * round % 37;
            if let Some(bucket) = keys.enter(key, 20, Instant::now(), &meter) {
                meter.take(bucket);
            }
            tokio::time::advance(Duration::from_millis(round % 97)).await;

            assert_eq!(keys.due.len(), keys.len());
            assert!(keys.due.iter().all(|due| keys.get(&due.key).is_some()));
        }
    }
}
