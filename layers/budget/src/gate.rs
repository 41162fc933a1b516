//! One limit at work: what becomes of a call that is over it, and what is told of that.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    Limit, Mode, OverBudget, Patience, Place, Verdict,
    bucket::Bucket,
    episode::Episode,
    meter::{Meter, Outcome},
    observe,
};

/// A limit, what counts its calls, and whether it has refused lately.
pub(crate) struct Gate {
    limit: Limit,
    meter: Meter,
    refusals: Episode,
}

/// Whose bucket it was, asked only when there is something to tell.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    pub(crate) key: Option<Arc<str>>,
    pub(crate) overflow: bool,
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(limit: Limit) -> Self {
        Self {
            meter: Meter::new(limit.quota()),
            limit,
            refusals: Episode::new(Instant::now()),
        }
    }

    pub(crate) const fn limit(&self) -> &Limit {
        &self.limit
    }

    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Decides on a call that found nothing to take in `bucket`.
    pub(crate) fn arrive(
        &self,
        bucket: &Arc<Bucket>,
        place: &mut Place,
        patience: Patience<'_>,
        owner: impl FnOnce() -> Owner,
    ) -> Verdict {
        if self.limit.mode() == Mode::Warn {
            if let Err(refill) = self.meter.check(bucket) {
                let over = self.over(refill.at, owner());
                observe::warned(&over, self.refusals.begins(Instant::now()));
            }
            return Verdict::Admitted;
        }
        let outcome = self.meter.arrive(bucket, place, patience);
        if let Outcome::Waits(turn) = outcome {
            observe::waiting(&self.limit, turn.saturating_duration_since(Instant::now()));
        }
        self.verdict(outcome, owner)
    }

    /// Decides on a call that waits. `None` if it does not wait here.
    pub(crate) fn recheck(
        &self,
        place: &mut Place,
        patience: Patience<'_>,
        owner: impl FnOnce() -> Owner,
    ) -> Option<Verdict> {
        let outcome = self.meter.recheck(place, patience)?;
        Some(self.verdict(outcome, owner))
    }

    fn verdict(&self, outcome: Outcome, owner: impl FnOnce() -> Owner) -> Verdict {
        match outcome {
            Outcome::Admitted => Verdict::Admitted,
            Outcome::Waits(turn) => Verdict::Wait(turn),
            Outcome::Over(turn) => {
                let over = self.over(turn, owner());
                observe::rejected(&over, self.refusals.begins(Instant::now()));
                Verdict::Over(over)
            }
        }
    }

    fn over(&self, turn: Instant, owner: Owner) -> OverBudget {
        let retry_in = turn.saturating_duration_since(Instant::now());
        let over =
            OverBudget::new(self.limit.shared_name(), retry_in).with_overflow(owner.overflow);
        match owner.key {
            Some(key) => over.with_key(key),
            None => over,
        }
    }
}
