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
    pub(super) rules: Rules,
    pub(super) phase: Phase,
    pub(super) era: Era,
    pub(super) seats: usize,
    pub(super) waiters: usize,
    pub(super) calls: usize,
    pub(super) idle: Idle,
    pub(super) losses: Losses,
    pub(super) drained: bool,
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

    /// A waiter left. `true` if it was the last and nobody holds the connection: a start
    /// is called off, and an idle connection has a deadline from now on.
    pub(crate) fn unwait(&mut self, era: Era) -> bool {
        if era != self.era {
            return false;
        }
        self.waiters = self.waiters.saturating_sub(1);
        if self.waiters > 0 {
            return false;
        }
        match self.phase {
            Phase::Starting => {
                self.phase = Phase::Closing(Why::Abandoned);
                true
            }
            Phase::Active { .. } => self.seats == 0,
            Phase::Vacant | Phase::Leaving { .. } | Phase::Closing(_) => false,
        }
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
}

#[cfg(test)]
mod tests;
