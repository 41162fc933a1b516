//! When refusals begin, so that a long run of them is told once.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// A run of refusals. It ends when nothing was refused for [`QUIET`].
#[derive(Debug)]
pub(crate) struct Episode {
    epoch: Instant,
    /// Milliseconds from `epoch` to the last refusal, plus one; 0 before the first.
    last: AtomicU64,
}

/// Long enough that a limit in constant use is told once, not at each refill.
pub(crate) const QUIET: Duration = Duration::from_secs(30);

// === impl Episode ===

impl Episode {
    pub(crate) const fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            last: AtomicU64::new(0),
        }
    }

    /// Notes a refusal; says whether a run of them begins with it.
    pub(crate) fn begins(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.epoch).as_millis();
        let now = u64::try_from(since).unwrap_or(u64::MAX).saturating_add(1);
        // One step, so that of two refusals at once only one begins the run.
        let last = self.last.swap(now, Ordering::Relaxed);
        last == 0 || u128::from(now.saturating_sub(last)) >= QUIET.as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_once_and_again_after_a_quiet_time() {
        let start = Instant::now();
        let episode = Episode::new(start);
        let ms = Duration::from_millis;
        let quiet = QUIET.as_millis() as u64;

        for (at, begins) in [
            (0, true),
            (0, false),
            (quiet - 1, false),
            // The quiet time runs from the last refusal, not from the first.
            (2 * quiet - 2, false),
            (3 * quiet - 2, true),
            (3 * quiet - 1, false),
        ] {
            assert_eq!(episode.begins(start + ms(at)), begins, "at {at} ms");
        }
    }
}
