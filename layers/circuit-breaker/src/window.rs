//! The calls of the last while, in ten buckets.

use std::time::Duration;

use crate::{pass::Pass, state::Counts, time::Time};

const BUCKETS: usize = 10;

/// The calls of the last while. Exact: a bucket is counted whole until it is dropped whole.
/// Bounded: ten buckets, however many calls. A call costs one addition, and the dropping of
/// buckets costs ten steps at most, however long nobody called.
///
/// It knows for which generation of the circuit it counts, and begins anew with the next.
#[derive(Debug)]
pub(crate) struct Window {
    bucket_nanos: u64,
    buckets: [Counts; BUCKETS],
    total: Counts,
    /// The number of the newest bucket, counted from the beginning of time.
    newest: u64,
    generation: u32,
}

// === impl Window ===

impl Window {
    pub(crate) fn new(length: Duration) -> Self {
        let bucket = length / BUCKETS as u32;
        Self {
            bucket_nanos: u64::try_from(bucket.as_nanos()).unwrap_or(u64::MAX).max(1),
            buckets: [Counts::default(); BUCKETS],
            total: Counts::default(),
            newest: 0,
            generation: 0,
        }
    }

    /// Counts a call, and says what the window then holds; `None` if the call is of an
    /// older generation than the window.
    pub(crate) fn record(
        &mut self,
        pass: Pass,
        now: Time,
        failed: bool,
        slow: bool,
    ) -> Option<Counts> {
        match pass.is_newer_than(self.generation) {
            Some(true) => self.restart(pass.generation()),
            Some(false) => return None,
            None => {}
        }
        self.advance(now);
        let one = Counts {
            calls: 1,
            failures: u64::from(failed),
            slow: u64::from(slow),
        };
        self.buckets[index(self.newest)].add(one);
        self.total.add(one);
        Some(self.total)
    }

    /// What the window holds of this generation.
    pub(crate) fn counts(&mut self, now: Time, generation: u32) -> Counts {
        self.advance(now);
        if self.generation == generation {
            self.total
        } else {
            Counts::default()
        }
    }

    fn restart(&mut self, generation: u32) {
        self.buckets = [Counts::default(); BUCKETS];
        self.total = Counts::default();
        self.generation = generation;
    }

    /// Drops the buckets that are too old. A time before the newest bucket, of a call that
    /// was overtaken on its way here, counts into that.
    fn advance(&mut self, now: Time) {
        let newest = now.nanos() / self.bucket_nanos;
        let passed = newest.saturating_sub(self.newest);
        for step in 1..=passed.min(BUCKETS as u64) {
            let bucket = &mut self.buckets[index(self.newest + step)];
            self.total.remove(*bucket);
            *bucket = Counts::default();
        }
        self.newest += passed;
    }
}

const fn index(bucket: u64) -> usize {
    (bucket % BUCKETS as u64) as usize
}

// === impl Counts ===

impl Counts {
    const fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.slow += other.slow;
    }

    const fn remove(&mut self, other: Self) {
        self.calls -= other.calls;
        self.failures -= other.failures;
        self.slow -= other.slow;
    }
}
