//! Times that fit into a part of a word.

use std::time::Duration;

/// The longest span that is kept: an open time, a lease, a healthy period. Whoever sets one
/// sees to that.
pub(crate) const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// How many bits a time in milliseconds has. They last for two years and then start
/// again, which is why no deadline is ever compared by size, see [`Time::left`].
const BITS: u32 = 36;

/// How long the breaker has existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(u64);

// === impl Time ===

impl Time {
    pub(crate) fn since_epoch(elapsed: Duration) -> Self {
        // 584 years of nanoseconds.
        Self(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) const fn nanos(self) -> u64 {
        self.0
    }

    /// The tick in which this time lies, where a tick has `2^shift` milliseconds.
    pub(crate) const fn tick(self, shift: u32) -> u64 {
        (self.0 / tick_nanos(shift)) & mask(shift)
    }

    /// The first tick that begins when `span` is over, so that nothing ends early.
    pub(crate) fn deadline(self, span: Duration, shift: u32) -> u64 {
        let end = self.0.saturating_add(nanos(span));
        end.div_ceil(tick_nanos(shift)) & mask(shift)
    }

    /// How long until the tick `deadline` begins; `None` once it has begun.
    ///
    /// Ticks start again at zero, so a deadline that is further ahead than any span can
    /// be is one that has passed.
    pub(crate) fn left(self, deadline: u64, shift: u32) -> Option<Duration> {
        let ticks = deadline.wrapping_sub(self.tick(shift)) & mask(shift);
        let furthest = nanos(MAX_SPAN).div_ceil(tick_nanos(shift));
        (1..=furthest)
            .contains(&ticks)
            .then(|| Duration::from_nanos(ticks * tick_nanos(shift) - self.0 % tick_nanos(shift)))
    }

    /// Whether at least `span` has passed since the tick `since`.
    pub(crate) fn is_past(self, since: u64, span: Duration, shift: u32) -> bool {
        let ticks = self.tick(shift).wrapping_sub(since) & mask(shift);
        // The tick in which it began may have been almost over.
        span.is_zero() || ticks > nanos(span).div_ceil(tick_nanos(shift))
    }
}

const fn tick_nanos(shift: u32) -> u64 {
    1_000_000 << shift
}

const fn mask(shift: u32) -> u64 {
    (1 << (BITS - shift)) - 1
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
