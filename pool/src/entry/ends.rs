//! How a connection is brought to its end: by retiring it, by a drain, or by the clock.

use tokio::time::Instant;

use super::{
    machine::Machine,
    phase::{Phase, Why},
};

// === impl Machine ===

impl Machine {
    /// All who came so far have nothing to ask for any more. Calls that run may finish
    /// until `until`; who comes from now on is served once the old connection is gone.
    pub(crate) fn retire(&mut self, until: Instant) {
        self.era = self.era.next();
        self.seats = 0;
        self.waiters = 0;
        self.losses.forgive();
        self.leave(Why::Retired, until);
    }

    /// Nothing may be started any more, ever. Calls that run may finish until `until`.
    pub(crate) fn drain(&mut self, until: Instant) {
        self.drained = true;
        self.leave(Why::Drained, until);
    }

    fn leave(&mut self, why: Why, until: Instant) {
        self.phase = match self.phase {
            Phase::Active { .. } => Phase::Leaving { why, until },
            Phase::Leaving { why, until: before } => Phase::Leaving {
                why,
                until: before.min(until),
            },
            Phase::Starting => Phase::Closing(why),
            phase @ (Phase::Vacant | Phase::Closing(_)) => phase,
        };
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            // Who waits for it has not seen yet that it is there.
            Phase::Active { .. } if self.waiters > 0 => None,
            Phase::Active { .. } => self.idle.deadline(),
            Phase::Leaving { until, .. } => Some(until),
            Phase::Vacant | Phase::Starting | Phase::Closing(_) => None,
        }
    }

    /// Closes what was idle for too long, and what was only waiting for its calls.
    pub(crate) fn tick(&mut self, now: Instant) {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        match self.phase {
            Phase::Active { .. } if due => self.phase = Phase::Closing(Why::Idle),
            Phase::Leaving { why, .. } if due || self.calls == 0 => {
                self.phase = Phase::Closing(why);
            }
            Phase::Active { .. }
            | Phase::Leaving { .. }
            | Phase::Vacant
            | Phase::Starting
            | Phase::Closing(_) => {}
        }
    }
}
