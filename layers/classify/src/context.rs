//! What travels with a request through the layers.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

use crate::{Flight, Limits};

/// What travels with a request through the layers: its deadline, which attempt this
/// is, its idempotency key, its own limits, and the proof of delivery.
///
/// It is held by value and never shared. A clone is the context of *another* attempt,
/// so it never carries the [`Flight`] of the one it was cloned from, and that flight no
/// longer speaks for all attempts ([`Flight::is_sole`]). A wire that clones its request
/// takes the flight out first.
#[derive(Debug, Default)]
pub struct CallContext {
    deadline: Option<Instant>,
    key: Option<IdempotencyKey>,
    limits: Option<Arc<Limits>>,
    flight: Option<Flight>,
    attempt: u32,
    tracked: bool,
}

/// A key that is the same on every attempt of one logical call, and different for two
/// logical calls, however equal their arguments. 128 bits, written as 32 hexadecimal
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdempotencyKey([u64; 2]);

// === impl CallContext ===

impl CallContext {
    /// A context without deadline, limits or proof of delivery.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            deadline: None,
            key: None,
            limits: None,
            flight: None,
            attempt: 0,
            tracked: false,
        }
    }

    /// A context that asks the timeout layer for a [`Flight`] on each attempt, so that
    /// a call that certainly never left can be told from one that may have run.
    #[must_use]
    pub const fn tracked() -> Self {
        let mut context = Self::new();
        context.tracked = true;
        context
    }

    /// When the whole logical call ends, if that was said.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Ends the call at `at`, or where it already ended if that is earlier: a deadline
    /// is a ceiling, and no layer can lift another's.
    #[inline]
    pub fn cap_deadline(&mut self, at: Instant) {
        self.deadline = Some(self.deadline.map_or(at, |deadline| deadline.min(at)));
    }

    /// Which attempt this is, from 1; 0 before any retry layer has seen it.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Says which attempt this is, from 1.
    pub const fn set_attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
    }

    /// The key of the logical call, if it has one.
    #[must_use]
    pub const fn idempotency_key(&self) -> Option<IdempotencyKey> {
        self.key
    }

    /// Gives the logical call its key.
    pub const fn set_idempotency_key(&mut self, key: IdempotencyKey) {
        self.key = Some(key);
    }

    /// The limits this call brings along, if any.
    #[must_use]
    pub fn limits(&self) -> Option<&Limits> {
        self.limits.as_deref()
    }

    /// Gives the call limits of its own.
    pub fn set_limits(&mut self, limits: Arc<Limits>) {
        self.limits = Some(limits);
    }

    /// Whether each attempt is to carry a [`Flight`].
    #[must_use]
    pub const fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Says whether each attempt is to carry a [`Flight`].
    pub const fn set_tracked(&mut self, tracked: bool) {
        self.tracked = tracked;
    }

    /// The proof of delivery of this attempt, if it carries one.
    #[must_use]
    pub const fn flight(&self) -> Option<&Flight> {
        self.flight.as_ref()
    }

    /// Gives this attempt its proof of delivery.
    pub fn set_flight(&mut self, flight: Flight) {
        self.flight = Some(flight);
    }

    /// Takes the proof of delivery out, for the wire to keep.
    pub const fn take_flight(&mut self) -> Option<Flight> {
        self.flight.take()
    }
}

impl Clone for CallContext {
    // In each call at least once, and half as fast across crates without.
    #[inline]
    fn clone(&self) -> Self {
        if let Some(flight) = &self.flight {
            flight.note_copy();
        }
        Self {
            deadline: self.deadline,
            key: self.key,
            limits: self.limits.clone(),
            // A flight proves the delivery of one attempt; this is another one.
            flight: None,
            attempt: self.attempt,
            tracked: self.tracked,
        }
    }
}

// === impl IdempotencyKey ===

impl IdempotencyKey {
    /// The key with this value; the caller sees to it that it is random.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "splits 128 bits into two halves, on purpose"
    )]
    pub const fn from_u128(value: u128) -> Self {
        Self([(value >> 64) as u64, value as u64])
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({self})")
    }
}
