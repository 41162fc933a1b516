//! What is done to a circuit by hand, seen of it, and asked by a registry.

use std::sync::{Arc, atomic::Ordering};

use tokio::{sync::watch, time::Instant};

use crate::{
    Snapshot, State, Transition,
    bits::{Bits, View},
    shared::{Shared, Why, lock, state_of},
};

// === impl Shared ===

/// What is done by hand, and seen.
impl Shared {
    pub(crate) fn isolate(&self) {
        self.word.apply(Bits::isolate, |from, to| {
            self.turn(from, to, Instant::now(), Some(Why::ISOLATED))
        });
    }

    pub(crate) fn reset(&self) {
        self.word.apply(Bits::reset, |from, to| {
            self.turn(from, to, Instant::now(), Some(Why::CLOSED))
        });
    }

    pub(crate) fn observe_only(&self, observe_only: bool) {
        self.observe_only.store(observe_only, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        state_of(self.word.load())
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Transition> {
        self.told.subscribe()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.time(Instant::now());
        let (bits, told) = loop {
            let bits = self.word.load();
            let told = *self.told.borrow();
            // A retired one tells nobody.
            if told.generation == bits.generation() || bits.view() == View::Retired {
                break (bits, told);
            }
        };
        let left = bits.shut_for(now);
        Snapshot {
            name: Arc::clone(&self.label.name),
            key: self.label.key.clone(),
            state: state_of(bits),
            cause: told.cause,
            trips: bits.trips(),
            consecutive_failures: match bits.view() {
                View::Closed { failures, .. } => failures,
                _ => 0,
            },
            window: self
                .window
                .as_ref()
                .map(|window| lock(window).counts(now, bits.generation())),
            probing: state_of(bits) == State::HalfOpen && left.is_some(),
            retry_in: left,
            rejected: self.rejected.load(Ordering::Relaxed),
            observe_only: self.observe_only.load(Ordering::Relaxed),
        }
    }
}

/// What a registry asks.
impl Shared {
    /// Notes that it is used. Mostly a load, since all who use it share the flag.
    pub(crate) fn touch(&self) {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since this was last asked.
    pub(crate) fn take_touch(&self) -> bool {
        self.touched.swap(false, Ordering::Relaxed)
    }

    /// Takes it out of service, if it is closed, or also if it is overdue for a probe.
    pub(crate) fn retire(&self, overdue: bool) -> bool {
        let now = self.time(Instant::now());
        self.word
            .apply(
                |bits| bits.retire(now, overdue),
                |from, to| self.word.swap(from, to),
            )
            .is_some()
    }

    /// Whether it is not closed, and yet would let a probe through.
    pub(crate) fn is_overdue(&self) -> bool {
        let bits = self.word.load();
        matches!(state_of(bits), State::Open | State::HalfOpen)
            && bits.shut_for(self.time(Instant::now())).is_none()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.load().is_closed()
    }
}
