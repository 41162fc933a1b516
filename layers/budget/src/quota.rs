//! How many calls, in how much time.

use std::{num::NonZeroU32, time::Duration};

use crate::InvalidLimit;

/// How many calls a limit lets through: a rate, and how many of them may come at once.
///
/// Calls are let through as GCRA (the leaky bucket as a meter) has it: a bucket holds
/// `burst` calls and regains one every [`interval`](Self::interval). So in *any* window
/// of length `w` at most `burst + w / interval` calls pass, and over a long time never
/// more than the rate. The interval is rounded up to a whole nanosecond, never down: a
/// rate is never exceeded.
///
/// It is written and read as `10/s`, `60/min burst 5`, `1000/h`:
///
/// ```
/// # use steadfast_budget::Quota;
/// let quota: Quota = "60/min burst 5".parse()?;
/// assert_eq!(quota.burst().get(), 5);
/// assert_eq!(quota.to_string(), "60/min burst 5");
/// # Ok::<(), steadfast_budget::InvalidLimit>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    count: NonZeroU32,
    per: Per,
    burst: NonZeroU32,
}

/// The time that `count` calls are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Per {
    Second,
    Minute,
    Hour,
}

/// What a bucket may take to refill. Far above any use, and far enough below the 584
/// years at which governor's arithmetic ends.
const MAX_FILL_NANOS: u64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

// === impl Quota ===

impl Quota {
    /// `count` calls per second, all of which may come at once.
    #[must_use]
    pub const fn per_second(count: NonZeroU32) -> Self {
        Self::new(count, Per::Second)
    }

    /// `count` calls per minute, all of which may come at once.
    #[must_use]
    pub const fn per_minute(count: NonZeroU32) -> Self {
        Self::new(count, Per::Minute)
    }

    /// `count` calls per hour, all of which may come at once.
    #[must_use]
    pub const fn per_hour(count: NonZeroU32) -> Self {
        Self::new(count, Per::Hour)
    }

    /// The burst is the count unless it is said: "ten per second" is then kept by
    /// whoever makes ten calls and looks at the clock.
    pub(crate) const fn new(count: NonZeroU32, per: Per) -> Self {
        Self {
            count,
            per,
            burst: count,
        }
    }

    /// Lets `burst` calls come at once, whatever the rate.
    ///
    /// # Errors
    ///
    /// [`InvalidLimit::Burst`] if a bucket of that size would take more than 100 years to
    /// refill.
    pub const fn with_burst(mut self, burst: NonZeroU32) -> Result<Self, InvalidLimit> {
        let max = MAX_FILL_NANOS / self.interval_nanos();
        if burst.get() as u64 > max {
            // It is below `burst`, which is a `u32`, and an interval is an hour at most.
            #[allow(clippy::cast_possible_truncation, reason = "below a `u32`")]
            return Err(InvalidLimit::Burst { max: max as u32 });
        }
        self.burst = burst;
        Ok(self)
    }

    /// How many calls may come at once.
    #[must_use]
    pub const fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    /// The time in which one call is regained, to the nanosecond, rounded up.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_nanos())
    }

    pub(crate) const fn count(&self) -> NonZeroU32 {
        self.count
    }

    pub(crate) const fn per(&self) -> Per {
        self.per
    }

    const fn interval_nanos(&self) -> u64 {
        self.per.nanos().div_ceil(self.count.get() as u64)
    }

    pub(crate) fn to_governor(self) -> governor::Quota {
        governor::Quota::with_period(self.interval())
            .expect("a rounded-up interval is at least a nanosecond")
            .allow_burst(self.burst)
    }
}

// === impl Per ===

impl Per {
    const fn nanos(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        };
        seconds * 1_000_000_000
    }
}
