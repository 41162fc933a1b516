//! What counts the calls of a limit: governor, and a line in front of each bucket.

use std::{sync::Arc, time::Duration};

use governor::{
    RateLimiter,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};
use tokio::time::Instant;

use crate::{
    Patience, Place, Quota,
    bucket::Bucket,
    clock::{Moment, TokioClock, later},
    line::{Refill, Standing},
};

/// Counts the calls of one limit, each in the bucket it is told.
pub(crate) struct Meter {
    limiter: RateLimiter<Arc<Bucket>, Buckets, TokioClock, NoOpMiddleware<Moment>>,
    /// When the limiter began, from which its buckets count, or a moment later.
    began: Instant,
}

/// The buckets are kept elsewhere: to governor, the bucket itself is the key.
struct Buckets;

/// What a meter says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has its call.
    Admitted,
    /// It stands in the line, and its turn is then.
    Waits(Instant),
    /// It could go then, but will not wait so long.
    Over(Instant),
}

// === impl Meter ===

impl Meter {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            limiter: RateLimiter::new(quota.to_governor(), Buckets, TokioClock),
            began: Instant::now(),
        }
    }

    /// Takes a call, if there is one and nobody waits for it.
    pub(crate) fn take(&self, bucket: &Arc<Bucket>) -> bool {
        !bucket.has_line() && self.limiter.check_key(bucket).is_ok()
    }

    /// Takes a call, whoever waits, or says when there will be one.
    pub(crate) fn check(&self, bucket: &Arc<Bucket>) -> Result<(), Refill> {
        self.limiter.check_key(bucket).map_err(|not_until| Refill {
            at: not_until.earliest_possible().0,
            interval: not_until.quota().replenish_interval(),
        })
    }

    /// Since when, or from when on, the bucket is full.
    pub(crate) fn full_at(&self, bucket: &Bucket) -> Instant {
        // What is to be stored is an error, so nothing is.
        let read = |at: Option<Nanos>| Err::<((), Nanos), _>(at.unwrap_or_default());
        match bucket.state.measure_and_replace(&NotKeyed::NonKey, read) {
            Err(at) => later(self.began, Duration::from(at)),
            Ok(()) => self.began,
        }
    }

    /// Decides on a call that comes now: those in the line go first.
    pub(crate) fn arrive(
        &self,
        bucket: &Arc<Bucket>,
        place: &mut Place,
        patience: Patience<'_>,
    ) -> Outcome {
        let waker = patience.waker().cloned();
        let (outcome, number) = bucket.with_line(|line| {
            let refill = match line.settle(|| self.check(bucket)) {
                Some(refill) => refill,
                None => match self.check(bucket) {
                    Ok(()) => return (Outcome::Admitted, None),
                    Err(refill) => refill,
                },
            };
            let turn = refill.turn(line.waiting());
            if !patience.allows(turn) {
                return (Outcome::Over(turn), None);
            }
            (Outcome::Waits(turn), Some(line.join(turn, waker)))
        });
        if let Some(number) = number {
            place.keep(Arc::clone(bucket), number);
        }
        outcome
    }

    /// Decides on the call that keeps this place. `None` if it keeps none.
    pub(crate) fn recheck(&self, place: &mut Place, patience: Patience<'_>) -> Option<Outcome> {
        let (bucket, number) = place.get()?;
        let waker = patience.waker().cloned();
        let (outcome, _old) = bucket.with_line(|line| {
            let old = line.awake(*number);
            let refill = line.settle(|| self.check(bucket));
            let outcome = match (line.stand(*number), refill) {
                (Standing::Behind(ahead), Some(refill)) => {
                    let turn = refill.turn(ahead);
                    if patience.allows(turn) {
                        line.stay(*number, turn, waker);
                        Outcome::Waits(turn)
                    } else {
                        Outcome::Over(turn)
                    }
                }
                // A line that is settled without a refill has granted everyone.
                (Standing::Granted, _) | (Standing::Behind(_), None) => Outcome::Admitted,
            };
            // Dropped by the caller: a waker may run code of its own.
            (outcome, old)
        });
        if outcome == Outcome::Admitted {
            place.forget();
        }
        Some(outcome)
    }
}

// === impl Buckets ===

impl StateStore for Buckets {
    type Key = Arc<Bucket>;

    fn measure_and_replace<T, F, E>(&self, bucket: &Arc<Bucket>, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        bucket.state.measure_and_replace(&NotKeyed::NonKey, measure)
    }
}
