//! One bucket, and the place of a call that waits for it.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
};

use governor::{
    NotUntil, RateLimiter,
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};
use tokio::time::Instant;

use crate::{
    Patience, Quota,
    clock::{Moment, TokioClock},
    line::{Line, Refill, Standing},
};

/// What governor counts, and the line of those who wait for it.
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Moment>>,
    /// The length of the line, so that a call that need not wait takes no lock.
    waiting: AtomicUsize,
    line: Mutex<Line>,
}

/// The place in a line that a waiting call keeps. Dropping it leaves the line.
#[derive(Debug, Default)]
pub struct Place(Option<(Arc<Bucket>, u64)>);

/// What a bucket says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It has its call.
    Admitted,
    /// It stands in the line, and its turn is then.
    Waits(Instant),
    /// It could go then, but will not wait so long.
    Over(Instant),
}

// === impl Bucket ===

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            limiter: RateLimiter::direct_with_clock(quota.to_governor(), TokioClock),
            waiting: AtomicUsize::new(0),
            line: Mutex::default(),
        }
    }

    /// Takes a call, if there is one and nobody waits for it.
    pub(crate) fn take(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0 && self.limiter.check().is_ok()
    }

    /// Takes a call, whoever waits, or says when there will be one.
    pub(crate) fn check(&self) -> Result<(), Refill> {
        self.limiter.check().map_err(|not_until| Refill {
            at: not_until.earliest_possible().0,
            interval: not_until.quota().replenish_interval(),
        })
    }

    /// Empties a full bucket, which is as good as a new one and may be dropped; says of
    /// another when it will be full.
    pub(crate) fn retire(&self, burst: NonZeroU32) -> Result<(), Instant> {
        let full_at = |not_until: NotUntil<Moment>| not_until.earliest_possible().0;
        match self.limiter.check_n(burst) {
            Ok(taken) => taken.map_err(full_at),
            // More than it can ever hold. It is its own burst, so this does not happen,
            // and a bucket that nobody can use up need not be kept.
            Err(_) => Ok(()),
        }
    }

    /// Decides on a call that comes now: those in the line go first.
    pub(crate) fn arrive(self: &Arc<Self>, place: &mut Place, patience: Patience<'_>) -> Outcome {
        let waker = patience.waker().cloned();
        let (outcome, number) = self.with_line(|line| {
            let refill = match line.settle(|| self.check()) {
                Some(refill) => refill,
                None => match self.check() {
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
        place.0 = number.map(|number| (Arc::clone(self), number));
        outcome
    }

    /// Decides on a call in the line.
    fn recheck(&self, number: u64, patience: Patience<'_>) -> Outcome {
        let waker = patience.waker().cloned();
        let (outcome, _old) = self.with_line(|line| {
            let old = line.awake(number);
            let refill = line.settle(|| self.check());
            let outcome = match (line.stand(number), refill) {
                (Standing::Behind(ahead), Some(refill)) => {
                    let turn = refill.turn(ahead);
                    if patience.allows(turn) {
                        line.stay(number, turn, waker);
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
        outcome
    }

    fn with_line<T>(&self, change: impl FnOnce(&mut Line) -> T) -> T {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut line);
        self.waiting.store(line.waiting(), Ordering::Release);
        let wakes = line.take_wakes();
        drop(line);
        // Not under the lock: what is woken may leave the line at once.
        wakes.into_iter().for_each(Waker::wake);
        result
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.load(Ordering::Relaxed);
        f.debug_struct("Bucket")
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

// === impl Place ===

impl Place {
    /// The bucket that is waited for, if there is one.
    pub(crate) fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.0.as_ref().map(|(bucket, _)| bucket)
    }

    /// Decides on the call that keeps this place. `None` if it keeps none.
    pub(crate) fn recheck(&mut self, patience: Patience<'_>) -> Option<Outcome> {
        let (bucket, number) = self.0.as_ref()?;
        let outcome = bucket.recheck(*number, patience);
        if outcome == Outcome::Admitted {
            // It is out of the line already.
            self.0 = None;
        }
        Some(outcome)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((bucket, number)) = self.0.take() {
            // The waker is dropped out here, not under the lock.
            let _waker = bucket.with_line(|line| line.leave(number));
        }
    }
}
