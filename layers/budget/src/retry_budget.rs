//! How many retries there may be for so many calls.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tower::retry::budget::Budget;

use crate::{
    InvalidRetryBudget,
    episode::Episode,
    observe,
    tally::{RETRY, Rules, Tally},
};

/// How many retries there may be for so many calls, so that retries cannot multiply the
/// load on a server that is already failing.
///
/// Each first attempt adds a share of a retry (20 %), each retry takes a whole one. A
/// reserve (10 retries) is there from the start and comes back with time (within 60 s),
/// so that a caller with few calls can retry at all. In any window of length `w` there
/// are at most `ceiling + 20 % of the first attempts + reserve * w / refill` retries.
///
/// It is a handle: its clones share one budget. Everything is counted in whole numbers,
/// each change is one atomic step, and a budget that is full is only read.
///
/// ```
/// use steadfast_budget::RetryBudget;
/// use tower::retry::budget::Budget;
///
/// let budget = RetryBudget::default();
/// budget.deposit(); // a first attempt
/// assert!(budget.withdraw()); // a retry
/// ```
#[derive(Clone)]
pub struct RetryBudget(Arc<Shared>);

struct Shared {
    word: AtomicU64,
    rules: Rules,
    epoch: Instant,
    refusals: Episode,
}

/// The settings of a [`RetryBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudgetSettings {
    percent: u32,
    reserve: u32,
    refill: Option<Duration>,
    ceiling: u32,
}

const MAX_PERCENT: u32 = 1_000;
const MAX_CEILING: u32 = 100_000;
const MAX_REFILL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

// === impl RetryBudget ===

impl RetryBudget {
    /// A budget with its reserve full.
    ///
    /// # Errors
    ///
    /// [`InvalidRetryBudget`] names the setting that is wrong, and what is allowed.
    pub fn new(settings: RetryBudgetSettings) -> Result<Self, InvalidRetryBudget> {
        Ok(Self::with_rules(settings.rules()?))
    }

    fn with_rules(rules: Rules) -> Self {
        let epoch = Instant::now();
        Self(Arc::new(Shared {
            word: AtomicU64::new(Tally::new(rules.reserve, 0).word()),
            rules,
            epoch,
            refusals: Episode::new(epoch),
        }))
    }

    /// How many retries there may be just now.
    #[must_use]
    pub fn balance(&self) -> u32 {
        let tally = Tally::from_word(self.0.word.load(Ordering::Acquire));
        let balance = tally.grow(self.0.now(), &self.0.rules).balance() / RETRY;
        u32::try_from(balance).unwrap_or(u32::MAX)
    }
}

impl Budget for RetryBudget {
    /// Adds the share of one first attempt.
    fn deposit(&self) {
        // An error is a full budget, in which nothing changes.
        let _ = self.0.update(|tally| tally.deposit(&self.0.rules));
    }

    /// Takes one retry, if there is one.
    fn withdraw(&self) -> bool {
        let now = self.0.now();
        let taken = self.0.update(|tally| tally.withdraw(now, &self.0.rules));
        if taken.is_err() {
            observe::retry_refused(self.0.refusals.begins(Instant::now()));
        }
        taken.is_ok()
    }
}

impl Default for RetryBudget {
    /// 20 % of the first attempts, 10 in reserve; see [`RetryBudgetSettings`].
    fn default() -> Self {
        Self::with_rules(RetryBudgetSettings::new().unchecked())
    }
}

impl fmt::Debug for RetryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryBudget")
            .field("balance", &self.balance())
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn now(&self) -> u64 {
        let since = Instant::now().saturating_duration_since(self.epoch);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// One step, so that no deposit is lost and no retry is given twice.
    fn update(&self, change: impl Fn(Tally) -> Option<Tally>) -> Result<u64, u64> {
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                change(Tally::from_word(word)).map(Tally::word)
            })
    }
}

// === impl RetryBudgetSettings ===

impl RetryBudgetSettings {
    /// The defaults: 20 % of the first attempts, 10 retries in reserve that come back
    /// within 60 s, at most 100 saved.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            percent: 20,
            reserve: 10,
            refill: Some(Duration::from_secs(60)),
            ceiling: 100,
        }
    }

    /// Sets how many retries a hundred first attempts add. Default: 20, so that a server
    /// on which everything fails gets a fifth more calls, and not the four times as many
    /// that three retries each would make. At most 1000.
    #[must_use]
    pub const fn with_percent(mut self, percent: u32) -> Self {
        self.percent = percent;
        self
    }

    /// Sets how many retries there are whatever the number of calls. Default: 10, so that
    /// a session that has just begun, and one with a call now and then, can retry each
    /// call as often as it may.
    #[must_use]
    pub const fn with_reserve(mut self, retries: u32) -> Self {
        self.reserve = retries;
        self
    }

    /// Sets the time in which an empty reserve is full again, `None` for never. Default:
    /// 60 s, ten more calls a minute to a server that is down. Without it, a caller with
    /// few calls that has used its reserve up once could hardly retry again.
    #[must_use]
    pub const fn with_refill(mut self, refill: Option<Duration>) -> Self {
        self.refill = refill;
        self
    }

    /// Sets how many retries may be saved. Default: 100, so that a day without failures
    /// does not pay for a storm of retries.
    #[must_use]
    pub const fn with_ceiling(mut self, retries: u32) -> Self {
        self.ceiling = retries;
        self
    }

    fn rules(self) -> Result<Rules, InvalidRetryBudget> {
        let refill = self.refill.unwrap_or(Duration::from_millis(1));
        if self.percent > MAX_PERCENT {
            return Err(InvalidRetryBudget::Percent);
        }
        if self.ceiling > MAX_CEILING {
            return Err(InvalidRetryBudget::Ceiling);
        }
        if self.reserve > self.ceiling {
            return Err(InvalidRetryBudget::Reserve);
        }
        if refill < Duration::from_millis(1) || refill > MAX_REFILL {
            return Err(InvalidRetryBudget::Refill);
        }
        Ok(self.unchecked())
    }

    fn unchecked(self) -> Rules {
        let refill = self.refill.map_or(0, |refill| refill.as_millis());
        Rules {
            // A retry has a hundred parts.
            deposit: u64::from(self.percent),
            reserve: u64::from(self.reserve) * RETRY,
            ceiling: u64::from(self.ceiling) * RETRY,
            refill: u64::try_from(refill).unwrap_or(u64::MAX),
        }
    }
}

impl Default for RetryBudgetSettings {
    fn default() -> Self {
        Self::new()
    }
}
