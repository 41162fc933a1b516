//! A count per server of what made its kept answers stale.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::atomic::{AtomicU64, Ordering},
};

/// How many counts there are: 32 KiB, and among twenty servers two share a count once in
/// twenty-two times.
const CELLS: usize = 4096;

/// A count per server that only grows: what was read under one count says nothing about
/// the server under the next.
///
/// The number of counts is fixed, so servers may come and go for ever. Two that share a
/// count make each other's answers stale now and then, which costs a kept answer and
/// never gives a wrong one. (A map that forgets idle servers would: a count that starts
/// over meets answers from its first life.)
pub struct Generations {
    cells: Box<[AtomicU64]>,
}

// === impl Generations ===

impl Generations {
    /// Counts that all begin at 0.
    #[must_use]
    pub fn new() -> Self {
        Self {
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The present count of this server.
    #[must_use]
    pub fn get(&self, server: &str) -> u64 {
        self.cell(server).load(Ordering::Acquire)
    }

    /// Makes stale what was read from this server so far.
    pub fn raise(&self, server: &str) {
        self.cell(server).fetch_add(1, Ordering::AcqRel);
    }

    fn cell(&self, server: &str) -> &AtomicU64 {
        // Without a random seed: which servers share a count does not change from run
        // to run.
        let mut hasher = DefaultHasher::new();
        server.hash(&mut hasher);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "only the low bits choose the cell"
        )]
        let index = hasher.finish() as usize % CELLS;
        &self.cells[index]
    }
}

impl Default for Generations {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generations").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_count_of_its_own() {
        let generations = Generations::new();

        generations.raise("a");
        generations.raise("a");

        assert_eq!(generations.get("a"), 2);
        assert_eq!(generations.get("b"), 0);
    }

    #[test]
    fn any_number_of_servers_is_counted_in_the_same_space() {
        let generations = Generations::new();

        for server in 0..3 * CELLS {
            generations.raise(&server.to_string());
        }

        assert_eq!(generations.cells.len(), CELLS);
        assert!((0..3 * CELLS).all(|server| generations.get(&server.to_string()) > 0));
    }
}
