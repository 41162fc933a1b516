//! The arithmetic of a retry budget: whole numbers, in one word.

/// The balance of a retry budget, and when its reserve last grew, in one word, so that
/// each change is one atomic step: `[milliseconds: 40][balance: 24]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally(u64);

/// The rules of a retry budget, in parts of [`RETRY`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// What one first attempt adds.
    pub(crate) deposit: u64,
    /// Up to where the balance grows by itself.
    pub(crate) reserve: u64,
    /// Up to where it grows at all.
    pub(crate) ceiling: u64,
    /// The milliseconds in which an empty reserve is full again; 0 for never.
    pub(crate) refill: u64,
}

/// What one retry takes; the parts are per cent of it.
pub(crate) const RETRY: u64 = 100;

const SHIFT: u32 = 24;
const BALANCE: u64 = (1 << SHIFT) - 1;
/// 34 years.
const TIME: u64 = (1 << 40) - 1;

// === impl Tally ===

impl Tally {
    pub(crate) const fn new(balance: u64, at: u64) -> Self {
        let at = if at > TIME { TIME } else { at };
        Self(at << SHIFT | balance & BALANCE)
    }

    pub(crate) const fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    pub(crate) const fn balance(self) -> u64 {
        self.0 & BALANCE
    }

    const fn at(self) -> u64 {
        self.0 >> SHIFT
    }

    /// After a first attempt. `None` if that changes nothing, so that a full budget is
    /// only read.
    pub(crate) fn deposit(self, rules: &Rules) -> Option<Self> {
        let balance = (self.balance() + rules.deposit).min(rules.ceiling);
        (balance > self.balance()).then(|| Self::new(balance, self.at()))
    }

    /// After a retry at `now`. `None` if there is not enough for it.
    pub(crate) fn withdraw(self, now: u64, rules: &Rules) -> Option<Self> {
        let grown = self.grow(now, rules);
        let balance = grown.balance().checked_sub(RETRY)?;
        Some(Self::new(balance, grown.at()))
    }

    /// With what the reserve has regained until `now`.
    pub(crate) fn grow(self, now: u64, rules: &Rules) -> Self {
        let missing = rules.reserve.saturating_sub(self.balance());
        let elapsed = now.saturating_sub(self.at());
        if missing == 0 || rules.refill == 0 {
            return Self::new(self.balance(), self.at().max(now));
        }
        let gained = elapsed.saturating_mul(rules.reserve) / rules.refill;
        if gained >= missing {
            return Self::new(self.balance() + missing, self.at().max(now));
        }
        // Only the time that the whole parts took is used up, so that asking often does
        // not slow it down.
        let used = (gained * rules.refill).div_ceil(rules.reserve);
        Self::new(self.balance() + gained, self.at() + used)
    }
}
