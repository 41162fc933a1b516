//! The life of one key's connection, as a pure state machine.
//!
//! ```text
//!            want              started
//!  Vacant ─────────► Starting ─────────► Active ───┐ lost, idle, restart,
//!    ▲                  │                          │ retire, drain
//!    │ failed           │ nobody waits             ▼
//!    ├──────────────────┴──────────────────────► Closing
//!    └──────────────────────────────────────────────┘ closed
//! ```
//!
//! It knows no I/O and takes the time as an argument. The key stays occupied until the
//! old connection is proven gone (`closed`), so there is never a second one beside it.

use std::time::Duration;

use tokio::time::Instant;

use super::{idle::Idle, losses::Losses, losses::Respawn};

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
    seats: usize,
    waiters: usize,
    idle: Idle,
    losses: Losses,
    shut: Option<Shut>,
}

/// Where a key's connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Vacant,
    Starting,
    Active { since: Instant },
    Closing(Why),
}

/// Why a connection is being closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Nobody waited any more for its start.
    Abandoned,
    /// It ended by itself.
    Lost,
    /// Nobody held it for its grace, or its idle allowance was used up.
    Idle,
    /// It is being restarted.
    Restart,
    /// Its owner removed it.
    Retired,
    /// The pool is draining.
    Drained,
}

/// Why nothing may be started any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shut {
    Retired,
    Drained,
}

/// What somebody who needs the connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Use it.
    Ready,
    /// Wait for the next change.
    Wait,
    /// Start it: the machine is `Starting` now, and the caller has to see to it.
    Start,
    /// No attempt is allowed for this long.
    Later(Duration),
    /// Never again.
    Shut(Shut),
}

// === impl Machine ===

impl Machine {
    pub(crate) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            idle: Idle::new(rules.grace, rules.max_idle, now),
            losses: Losses::new(rules.respawn.clone()),
            rules,
            phase: Phase::Vacant,
            seats: 0,
            waiters: 0,
            shut: None,
        }
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) const fn seats(&self) -> usize {
        self.seats
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.losses.is_failed()
    }

    /// Whether nothing is left that anybody could need: it may be forgotten.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Vacant) && self.seats == 0 && self.waiters == 0
    }

    /// Whether the losses so far still say something about the next attempt.
    pub(crate) fn remembers(&self, now: Instant) -> bool {
        self.losses.remembers(now)
    }

    pub(crate) fn attach(&mut self, now: Instant) {
        self.seats += 1;
        self.idle.attach(now);
    }

    pub(crate) fn detach(&mut self, now: Instant) {
        self.seats -= 1;
        if self.seats == 0 {
            self.idle.detach(now);
        }
    }

    pub(crate) const fn wait(&mut self) {
        self.waiters += 1;
    }

    /// A waiter left. A start that nobody waits for any more is called off.
    pub(crate) fn unwait(&mut self) {
        self.waiters -= 1;
        if self.waiters == 0 && self.phase == Phase::Starting {
            self.phase = Phase::Closing(Why::Abandoned);
        }
    }

    /// Somebody needs the connection.
    pub(crate) fn want(&mut self, now: Instant) -> Want {
        match self.phase {
            Phase::Active { .. } => Want::Ready,
            Phase::Starting | Phase::Closing(_) => match self.shut {
                Some(shut) => Want::Shut(shut),
                None => Want::Wait,
            },
            Phase::Vacant => match (self.shut, self.losses.wait(now)) {
                (Some(shut), _) => Want::Shut(shut),
                (None, Some(wait)) => Want::Later(wait),
                (None, None) => {
                    self.phase = Phase::Starting;
                    Want::Start
                }
            },
        }
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
        if counted {
            self.losses.note(now, None, retry_after);
        }
        self.phase = Phase::Vacant;
    }

    /// The connection ended by itself.
    pub(crate) fn lost(&mut self, now: Instant) {
        if let Phase::Active { since } = self.phase {
            self.losses.note(now, Some(since), None);
            self.phase = Phase::Closing(Why::Lost);
        }
    }

    /// Ends the connection, or calls off its start. `false`: there is none, or it is ending
    /// already.
    pub(crate) const fn close(&mut self, why: Why) -> bool {
        match self.phase {
            Phase::Vacant | Phase::Closing(_) => false,
            Phase::Starting | Phase::Active { .. } => {
                self.phase = Phase::Closing(why);
                true
            }
        }
    }

    /// Nothing may be started any more, and what there is ends.
    pub(crate) const fn shut(&mut self, shut: Shut) {
        if self.shut.is_none() || matches!(shut, Shut::Drained) {
            self.shut = Some(shut);
        }
        self.close(match shut {
            Shut::Retired => Why::Retired,
            Shut::Drained => Why::Drained,
        });
    }

    /// The next attempt may be made at once, whatever happened before.
    pub(crate) const fn forgive(&mut self) {
        self.losses.forgive();
    }

    /// The old connection is proven gone.
    pub(crate) fn closed(&mut self) {
        if let Phase::Closing(_) = self.phase {
            self.phase = Phase::Vacant;
        }
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Active { .. } => self.idle.deadline(),
            Phase::Vacant | Phase::Starting | Phase::Closing(_) => None,
        }
    }

    /// Closes what was idle for too long.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.close(Why::Idle);
        }
    }
}
