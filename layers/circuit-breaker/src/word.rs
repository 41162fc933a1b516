//! The word as an atomic: one atomic step per decision.

use std::time::Duration;

use crate::{
    bits::{Bits, Step, View},
    pass::Pass,
    sync::{AtomicU64, Ordering},
    time::Time,
};

/// The state of one circuit.
#[derive(Debug)]
pub(crate) struct Word(AtomicU64);

/// What becomes of a call that asks to be let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The circuit is closed.
    Pass(Pass),
    /// It is the probe. `took_over`: the lease of the one before it had ended.
    Probe { pass: Pass, took_over: bool },
    /// It is turned away, by this word, for this long if that is known.
    Shut { by: Bits, left: Option<Duration> },
    /// Nobody decides by this word any more: look for another.
    Retired,
}

// === impl Word ===

impl Word {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(Bits::NEW.to_u64()))
    }

    #[inline]
    pub(crate) fn load(&self) -> Bits {
        Bits::from_u64(self.0.load(Ordering::Acquire))
    }

    /// What a call shows that is let through in a closed circuit, if it is closed.
    #[inline]
    pub(crate) fn pass(&self) -> Option<Pass> {
        let bits = self.load();
        bits.is_closed().then(|| bits.pass())
    }

    /// Takes a step that was computed from `from`, unless another was faster.
    pub(crate) fn swap(&self, from: Bits, to: Bits) -> bool {
        self.0
            .compare_exchange(
                from.to_u64(),
                to.to_u64(),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok()
    }

    /// Decides about a call: in a closed circuit one load.
    ///
    /// `turn` takes a step that changes the state, as [`swap`](Self::swap) does; whoever
    /// calls this may do more at that moment.
    pub(crate) fn admit(
        &self,
        now: impl Fn() -> Time,
        lease: Duration,
        turn: impl Fn(Bits, Bits) -> bool,
    ) -> Admission {
        loop {
            let from = self.load();
            let swapped = match from.view() {
                View::Closed { .. } => return Admission::Pass(from.pass()),
                View::Isolated => {
                    return Admission::Shut {
                        by: from,
                        left: None,
                    };
                }
                View::Retired => return Admission::Retired,
                View::Open { .. } | View::HalfOpen { .. } => {
                    let now = now();
                    let left = from.shut_for(now);
                    if left.is_some() {
                        return Admission::Shut { by: from, left };
                    }
                    let (to, pass) = from.probe(now, lease);
                    let (swapped, took_over) = match from.view() {
                        View::HalfOpen { lease, .. } => (self.swap(from, to), lease != 0),
                        _ => (turn(from, to), false),
                    };
                    swapped.then_some(Admission::Probe { pass, took_over })
                }
            };
            if let Some(admission) = swapped {
                return admission;
            }
        }
    }

    /// Takes one step, however many others are taken meanwhile; returns what it led from
    /// and to if the state changed by it.
    pub(crate) fn apply(
        &self,
        step: impl Fn(Bits) -> Step,
        turn: impl Fn(Bits, Bits) -> bool,
    ) -> Option<(Bits, Bits)> {
        loop {
            let from = self.load();
            match step(from) {
                Step::Stay => return None,
                Step::Count(to) if self.swap(from, to) => return None,
                Step::Turn(to) if turn(from, to) => return Some((from, to)),
                Step::Count(_) | Step::Turn(_) => {}
            }
        }
    }
}
