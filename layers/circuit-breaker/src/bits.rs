//! The whole state of a circuit in one word, and every step it can take.
//!
//! ```text
//! [state: 2][trips: 6][generation: 20][payload: 36]
//!
//! closed     payload = [since: 26, in 1024 ms][failures in a row: 10]
//! open       payload = [until: 36, in 1 ms]
//! half open  payload = [lease of the probe: 30, in 64 ms; 0 = none out][successes: 6]
//! manual     payload = 0 isolated, 1 retired
//! ```
//!
//! A step is a pure function of the word, what happened, and the time. Each change of the
//! state takes a new generation, and what was let through in an older one changes nothing.

use std::time::Duration;

use crate::{
    pass::{GENERATION, Pass},
    time::Time,
};

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits(u64);

/// What the word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// `since` is the tick in which it closed.
    Closed { failures: u32, since: u64 },
    /// `until` is the tick in which a probe may be let through.
    Open { until: u64 },
    /// `lease` is the tick in which the place of the probe is free again; 0: it is free.
    HalfOpen { successes: u32, lease: u64 },
    /// Closed to all by hand.
    Isolated,
    /// Evicted: nobody decides by this word any more.
    Retired,
}

/// Where one step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing changes.
    Stay,
    /// Something is counted; the state stays.
    Count(Bits),
    /// The state changes.
    Turn(Bits),
}

/// How a failure counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    /// This many in a row open the circuit; `None` if this one is not counted in a row.
    pub(crate) threshold: Option<u32>,
    /// A rate has been exceeded: open the circuit now.
    pub(crate) exceeded: bool,
    /// Closed for this long, earlier trips are forgotten.
    pub(crate) healthy_after: Duration,
}

/// The most failures in a row that the word can count.
pub(crate) const MAX_FAILURES: u32 = (1 << 10) - 1;
/// The most successes of probes that the word can ask for.
pub(crate) const MAX_PROBES: u32 = (1 << 6) - 1;

const TRIPS: u64 = (1 << 6) - 1;
const PAYLOAD: u64 = (1 << 36) - 1;

const CLOSED: u64 = 0;
const OPEN: u64 = 1;
const HALF_OPEN: u64 = 2;
const MANUAL: u64 = 3;

/// The ticks of each state's time: 2^10, 2^0 and 2^6 milliseconds.
const SINCE: u32 = 10;
const UNTIL: u32 = 0;
const LEASE: u32 = 6;

// === impl Bits ===

impl Bits {
    /// Closed, and never opened.
    pub(crate) const NEW: Self = Self(0);

    pub(crate) const fn from_u64(word: u64) -> Self {
        Self(word)
    }

    pub(crate) const fn to_u64(self) -> u64 {
        self.0
    }

    pub(crate) const fn is_closed(self) -> bool {
        self.0 >> 62 == CLOSED
    }

    /// Whether no success changes anything: closed, and no run of failures to end.
    pub(crate) const fn is_at_rest(self) -> bool {
        self.is_closed() && self.0 & MAX_FAILURES as u64 == 0
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 36) as u32 & GENERATION
    }

    /// How often it has opened since it was last healthy, up to 63.
    pub(crate) const fn trips(self) -> u32 {
        (self.0 >> 56 & TRIPS) as u32
    }

    pub(crate) const fn view(self) -> View {
        let payload = self.0 & PAYLOAD;
        match self.0 >> 62 {
            CLOSED => View::Closed {
                failures: payload as u32 & MAX_FAILURES,
                since: payload >> 10,
            },
            OPEN => View::Open { until: payload },
            HALF_OPEN => View::HalfOpen {
                successes: payload as u32 & MAX_PROBES,
                lease: payload >> 6,
            },
            _ if payload == 0 => View::Isolated,
            _ => View::Retired,
        }
    }

    /// How long nobody is let through; `None` if somebody would be.
    pub(crate) fn shut_for(self, now: Time) -> Option<Duration> {
        match self.view() {
            View::Open { until } => now.left(until, UNTIL),
            View::HalfOpen { lease, .. } if lease != 0 => now.left(lease, LEASE),
            View::Closed { .. } | View::HalfOpen { .. } | View::Isolated | View::Retired => None,
        }
    }

    /// What a call that is let through in a closed circuit, or only watched, shows.
    pub(crate) const fn pass(self) -> Pass {
        Pass::new(self.generation(), 0)
    }

    /// Open or half open with nobody's probe out => half open with this one out.
    pub(crate) fn probe(self, now: Time, lease: Duration) -> (Self, Pass) {
        // 0 means that no probe is out; where ticks start again it is one tick later.
        let lease = now.deadline(lease, LEASE).max(1);
        let to = match self.view() {
            View::HalfOpen { successes, .. } => self.with(half_open(successes, lease)),
            View::Closed { .. } | View::Open { .. } | View::Isolated | View::Retired => {
                self.turn(HALF_OPEN, self.trips(), half_open(0, lease))
            }
        };
        (to, Pass::new(to.generation(), lease))
    }

    /// A call succeeded. `probes` successes in a row close a half-open circuit.
    pub(crate) fn succeed(self, pass: Pass, probes: u32, now: impl FnOnce() -> Time) -> Step {
        match self.view_for(pass) {
            Some(View::Closed {
                failures: 1..,
                since,
            }) => Step::Count(self.with(closed(0, since))),
            Some(View::HalfOpen { successes, .. }) if successes + 1 >= probes => {
                let since = now().tick(SINCE);
                Step::Turn(self.turn(CLOSED, self.trips(), closed(0, since)))
            }
            Some(View::HalfOpen { successes, lease }) => {
                let lease = pass.give_back(lease);
                Step::Count(self.with(half_open(successes + 1, lease)))
            }
            _ => Step::Stay,
        }
    }

    /// A call failed. `open_for` is asked, if the circuit opens by it, with the number of
    /// trips in a row.
    pub(crate) fn fail(
        self,
        pass: Pass,
        weight: Weight,
        now: Time,
        open_for: impl FnOnce(u32) -> Duration,
    ) -> Step {
        let open = |trips: u32| {
            let trips = trips.min(TRIPS as u32);
            let until = now.deadline(open_for(trips), UNTIL);
            Step::Turn(self.turn(OPEN, trips, until))
        };
        match self.view_for(pass) {
            Some(View::Closed { failures, since }) => {
                let run = failures + u32::from(weight.threshold.is_some());
                if weight.exceeded || weight.threshold.is_some_and(|limit| run >= limit) {
                    let healthy = now.is_past(since, weight.healthy_after, SINCE);
                    open(if healthy { 1 } else { self.trips() + 1 })
                } else if run == failures {
                    Step::Stay
                } else {
                    Step::Count(self.with(closed(run, since)))
                }
            }
            Some(View::HalfOpen { .. }) => open(self.trips() + 1),
            _ => Step::Stay,
        }
    }

    /// A probe ended without a verdict, and gives its place back, unless its lease had
    /// ended and another has it.
    pub(crate) fn release(self, pass: Pass) -> Step {
        match self.view_for(pass) {
            Some(View::HalfOpen { successes, lease }) if pass.give_back(lease) != lease => {
                Step::Count(self.with(half_open(successes, 0)))
            }
            _ => Step::Stay,
        }
    }

    /// By hand: nobody is let through until it is reset.
    pub(crate) const fn isolate(self) -> Step {
        match self.view() {
            View::Isolated | View::Retired => Step::Stay,
            _ => Step::Turn(self.turn(MANUAL, self.trips(), 0)),
        }
    }

    /// By hand: closed, as if it were new, and no call that runs now counts any more.
    pub(crate) const fn reset(self) -> Step {
        match self.view() {
            View::Retired => Step::Stay,
            _ => Step::Turn(self.turn(CLOSED, 0, 0)),
        }
    }

    /// Evicts a closed circuit; with `overdue` also one that would let a probe through.
    pub(crate) fn retire(self, now: Time, overdue: bool) -> Step {
        let may_go = match self.view() {
            View::Closed { .. } => true,
            View::Open { .. } | View::HalfOpen { .. } => overdue && self.shut_for(now).is_none(),
            View::Isolated | View::Retired => false,
        };
        if may_go {
            Step::Turn(self.turn(MANUAL, self.trips(), 1))
        } else {
            Step::Stay
        }
    }

    /// The view, if the call was let through in this generation. In a half-open circuit
    /// only a probe was.
    const fn view_for(self, pass: Pass) -> Option<View> {
        if pass.generation() != self.generation() {
            return None;
        }
        match self.view() {
            View::HalfOpen { .. } if !pass.is_probe() => None,
            view => Some(view),
        }
    }

    /// The same state with another payload.
    const fn with(self, payload: u64) -> Self {
        Self(self.0 & !PAYLOAD | payload)
    }

    /// Another state, in the next generation.
    const fn turn(self, state: u64, trips: u32, payload: u64) -> Self {
        let generation = (self.generation() + 1) & GENERATION;
        Self(state << 62 | (trips as u64) << 56 | (generation as u64) << 36 | payload)
    }
}

const fn closed(failures: u32, since: u64) -> u64 {
    since << 10 | failures as u64
}

const fn half_open(successes: u32, lease: u64) -> u64 {
    lease << 6 | successes as u64
}
