//! Where jitter and keys come from.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use fastrand::Rng;
use steadfast_classify::IdempotencyKey;

/// One stream of random numbers for everything a layer makes.
///
/// A generator that is cloned with its service repeats itself: all clones then wait
/// equally long, and come back together. Of this one there is no clone. Each draw moves
/// the one state on, in one atomic step, so no two draws ever see the same state.
#[derive(Debug)]
pub(crate) struct Random {
    state: AtomicU64,
    /// Tells the keys of this layer from those of a layer, in another process perhaps,
    /// whose state happens to meet this one's.
    lane: u64,
}

/// The idempotency keys of one service.
#[derive(Debug)]
pub(crate) struct Keys {
    high: Rng,
    low: Rng,
}

/// Odd, so that all 2⁶⁴ states are visited before one comes back.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

// === impl Random ===

impl Random {
    /// A stream that differs between processes. `fastrand` seeds itself from clock and
    /// thread, which two hosts may share; the hasher's keys come from the system.
    pub(crate) fn new() -> Self {
        let system = RandomState::new();
        Self {
            state: AtomicU64::new(system.hash_one("state")),
            lane: system.hash_one("lane"),
        }
    }

    /// The same stream each time, for tests and simulations.
    pub(crate) fn with_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        Self {
            state: AtomicU64::new(rng.u64(..)),
            lane: rng.u64(..),
        }
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&self) -> f64 {
        Rng::with_seed(self.draw()).f64()
    }

    /// A source of keys of its own for one service, so that a call needs nothing that
    /// others use at the same time.
    pub(crate) fn keys(&self) -> Keys {
        let seed = self.draw();
        Keys {
            high: Rng::with_seed(seed),
            low: Rng::with_seed(seed ^ self.lane).fork(),
        }
    }

    fn draw(&self) -> u64 {
        self.state.fetch_add(STEP, Ordering::Relaxed)
    }
}

// === impl Keys ===

impl Keys {
    #[inline]
    pub(crate) fn next(&mut self) -> IdempotencyKey {
        let high = u128::from(self.high.u64(..)) << 64;
        IdempotencyKey::from_u128(high | u128::from(self.low.u64(..)))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn trap_s1_no_draw_is_lost_or_made_twice_between_threads() {
        let random = Random::with_seed(1);

        let draws: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..20_000).map(|_| random.draw()).collect::<Vec<_>>()))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });

        assert_eq!(draws.iter().collect::<HashSet<_>>().len(), 80_000);
    }

    #[test]
    fn trap_t1_key_sources_of_one_layer_share_no_key() {
        let random = Random::with_seed(1);

        let keys: HashSet<_> = (0..1_000)
            .flat_map(|_| {
                let mut keys = random.keys();
                [keys.next(), keys.next(), keys.next()]
            })
            .collect();

        assert_eq!(keys.len(), 3_000);
    }

    #[test]
    fn two_layers_differ_and_a_seed_repeats() {
        assert_ne!(Random::new().keys().next(), Random::new().keys().next());
        assert_eq!(
            Random::with_seed(7).keys().next(),
            Random::with_seed(7).keys().next()
        );
        assert_ne!(
            Random::with_seed(7).keys().next(),
            Random::with_seed(8).keys().next()
        );
    }
}
