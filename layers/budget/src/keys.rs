//! A bounded set of buckets, one per key.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    hash::Hash,
    sync::Arc,
};

use tokio::time::Instant;

use crate::{Quota, bucket::Bucket, clock::later};

/// How many keys a new one may look at to find some that are idle. Two would do to drop
/// them faster than new ones come; a few more make a full set find room sooner.
const SWEEP: usize = 4;

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
        quota: Quota,
        max: usize,
        now: Instant,
    ) -> Option<&Arc<Bucket>> {
        if !self.buckets.contains_key(&key) {
            self.sweep(quota, now);
            if self.buckets.len() >= max {
                return None;
            }
            self.due.push(Due {
                at: later(now, quota.interval()),
                key: key.clone(),
            });
        }
        let bucket = self.buckets.entry(key);
        Some(bucket.or_insert_with(|| Arc::new(Bucket::new(quota))))
    }

    /// Looks at a few keys that can be full, and drops those that are.
    fn sweep(&mut self, quota: Quota, now: Instant) {
        for _ in 0..SWEEP {
            if self.due.peek().is_none_or(|first| first.at > now) {
                return;
            }
            let Some(mut due) = self.due.pop() else {
                return;
            };
            if let Err(at) = self.retire(&due.key, quota, now) {
                due.at = at;
                self.due.push(due);
            } else {
                self.buckets.remove(&due.key);
            }
        }
    }

    /// Whether the key may be dropped, or else when to look at it again.
    fn retire(&self, key: &K, quota: Quota, now: Instant) -> Result<(), Instant> {
        let Some(bucket) = self.buckets.get(key) else {
            return Ok(());
        };
        // Somebody waits for it, and would be left with a bucket that nobody else sees.
        if Arc::strong_count(bucket) > 1 {
            return Err(later(now, quota.interval()));
        }
        bucket.retire(quota.burst())
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
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_key_looks_at_few_others_however_many_are_idle() {
        let quota: Quota = "1/s".parse().unwrap();
        let mut keys = Keys::new();
        for key in 0..1_000 {
            keys.enter(key, quota, 10_000, Instant::now()).unwrap();
        }
        tokio::time::advance(Duration::from_secs(60)).await;

        for entered in 1..=100 {
            keys.enter(1_000 + entered, quota, 10_000, Instant::now());
            assert_eq!(keys.len(), 1_000 + entered - entered * SWEEP);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_key_is_due_once() {
        let quota: Quota = "1/s".parse().unwrap();
        let mut keys = Keys::new();

        // Keys that are used again and again, dropped, and entered anew.
        for round in 0..2_000_u64 {
            let key = round * round % 37;
            let bucket = keys.enter(key, quota, 20, Instant::now());
            bucket.map(|bucket| bucket.take());
            tokio::time::advance(Duration::from_millis(round % 97)).await;

            assert_eq!(keys.due.len(), keys.len());
            assert!(keys.due.iter().all(|due| keys.get(&due.key).is_some()));
        }
    }
}
