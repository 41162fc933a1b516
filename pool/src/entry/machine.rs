//! The life of one key's connection, as a pure state machine.
//!
//! ```text
//!            want              started           retire, drain
//!  Vacant ─────────► Starting ─────────► Active ───────────────► Leaving
//!    ▲                  │                   │ lost, idle,           │ its calls are
//!    │ failed           │ nobody waits,     │ restart               │ done, or its
//!    │                  │ retire, drain     ▼                       │ time is up
//!    ├──────────────────┴─────────────── Closing ◄──────────────────┘
//!    └─────────────────────────────────────┘ closed
//! ```
//!
//! It knows no I/O and takes the time as an argument. The key stays occupied until the
//! old connection is proven gone (`closed`), so there is never a second one beside it.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    idle::Idle,
    losses::{Losses, Respawn},
    phase::{Era, Never, Phase, Restarting, Want, Why},
};

/// What the machine goes by.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) grace: Duration,
    pub(crate) max_idle: Duration,
    pub(crate) respawn: Respawn,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    rules: Rules,
    phase: Phase,
    era: Era,
    seats: usize,
    waiters: usize,
    calls: usize,
    idle: Idle,
    losses: Losses,
    drained: bool,
}

// === impl Machine ===

impl Machine {
    pub(crate) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            idle: Idle::new(rules.grace, rules.max_idle, now),
            losses: Losses::new(rules.respawn.clone()),
            rules,
            phase: Phase::Vacant,
            era: Era::default(),
            seats: 0,
            waiters: 0,
            calls: 0,
            drained: false,
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    pub(crate) const fn seats(&self) -> usize {
        self.seats
    }

    /// How many calls run.
    pub(crate) const fn calls(&self) -> usize {
        self.calls
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.losses.is_failed()
    }

    /// Whether nobody needs it: it holds nothing, and nobody is there.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Vacant) && self.seats == 0 && self.waiters == 0
    }

    /// Whether the losses so far still say something about the next attempt.
    pub(crate) fn remembers(&self, now: Instant) -> bool {
        self.losses.remembers(now)
    }

    pub(crate) fn attach(&mut self, now: Instant) -> Era {
        self.seats += 1;
        self.idle.attach(now);
        self.era
    }

    /// `true` if that was the last holder.
    pub(crate) fn detach(&mut self, era: Era, now: Instant) -> bool {
        if era != self.era || self.seats == 0 {
            return false;
        }
        self.seats -= 1;
        if self.seats > 0 {
            return false;
        }
        self.idle.detach(now);
        true
    }

    pub(crate) fn wait(&mut self, era: Era) {
        if era == self.era {
            self.waiters += 1;
        }
    }

    /// A waiter left. A start that nobody waits for any more is called off: then `true`.
    pub(crate) fn unwait(&mut self, era: Era) -> bool {
        if era != self.era {
            return false;
        }
        self.waiters = self.waiters.saturating_sub(1);
        let called_off = self.waiters == 0 && self.phase == Phase::Starting;
        if called_off {
            self.phase = Phase::Closing(Why::Abandoned);
        }
        called_off
    }

    /// Somebody needs the connection.
    pub(crate) fn want(&mut self, era: Era, now: Instant) -> Want {
        if let Some(never) = self.never(era) {
            return Want::Never(never);
        }
        match self.phase {
            Phase::Active { .. } => Want::Ready,
            Phase::Starting | Phase::Leaving { .. } | Phase::Closing(_) => Want::Wait,
            Phase::Vacant => match self.losses.wait(now) {
                Some(wait) => Want::Later(wait),
                None => {
                    self.phase = Phase::Starting;
                    Want::Start
                }
            },
        }
    }

    /// Why somebody who came in `era` gets no connection any more, if so.
    pub(crate) fn never(&self, era: Era) -> Option<Never> {
        if self.drained {
            Some(Never::Drained)
        } else {
            (era != self.era).then_some(Never::Retired)
        }
    }

    /// A call begins on the connection. Only after [`want`](Self::want) said `Ready`.
    pub(crate) const fn begin_call(&mut self) {
        self.calls += 1;
    }

    /// `true` if that was the last call that the end of the connection waited for.
    pub(crate) const fn end_call(&mut self) -> bool {
        self.calls = self.calls.saturating_sub(1);
        self.calls == 0 && matches!(self.phase, Phase::Leaving { .. })
    }

    /// The start succeeded. `false`: it was called off meanwhile, and what was started is
    /// to be closed.
    pub(crate) fn started(&mut self, now: Instant) -> bool {
        if self.phase != Phase::Starting {
            return false;
        }
        self.phase = Phase::Active { since: now };
        self.idle = Idle::new(self.rules.grace, self.rules.max_idle, now);
        if self.seats == 0 {
            self.idle.detach(now);
        }
        true
    }

    /// The start failed, and nothing is left of it. `counted`: whether that says something
    /// about the server (a wrong configuration or a full budget do not).
    pub(crate) fn failed(&mut self, now: Instant, counted: bool, retry_after: Option<Duration>) {
        if counted && self.phase == Phase::Starting {
            self.losses.note(now, None, retry_after);
        }
        self.phase = Phase::Vacant;
    }

    /// The connection ended by itself.
    pub(crate) fn lost(&mut self, now: Instant) {
        match self.phase {
            Phase::Active { since } => {
                self.losses.note(now, Some(since), None);
                self.phase = Phase::Closing(Why::Lost);
            }
            // Somebody is ending it for a reason of theirs, which stays the reason.
            Phase::Leaving { why, .. } => self.phase = Phase::Closing(why),
            Phase::Vacant | Phase::Starting | Phase::Closing(_) => {}
        }
    }

    /// The old connection is proven gone.
    pub(crate) const fn closed(&mut self) {
        self.phase = Phase::Vacant;
    }

    /// Whoever had the connection, or was making it, is gone without a word.
    pub(crate) fn vanished(&mut self, now: Instant) {
        match self.phase {
            Phase::Starting => self.failed(now, true, None),
            Phase::Active { .. } => self.lost(now),
            Phase::Vacant | Phase::Leaving { .. } | Phase::Closing(_) => {}
        }
        self.phase = Phase::Vacant;
    }

    /// Ends the connection so that another can be made, at once.
    pub(crate) fn restart(&mut self) -> Restarting {
        match self.phase {
            Phase::Active { .. } => {
                self.losses.forgive();
                self.phase = Phase::Closing(Why::Restart);
                Restarting::Begins
            }
            // Two connections on one key are never made, nor is one broken off that
            // somebody waits for.
            Phase::Starting => Restarting::Joins,
            _ if self.seats == 0 => Restarting::Nothing,
            // Somebody restarts it already, or the next one is another entry.
            Phase::Leaving { .. } | Phase::Closing(Why::Restart | Why::Retired | Why::Drained) => {
                Restarting::Joins
            }
            Phase::Vacant | Phase::Closing(_) => {
                self.losses.forgive();
                Restarting::Begins
            }
        }
    }

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
