//! What a call holds while it runs.

use std::sync::Arc;

use steadfast_classify::{Classified, Failure};
use tokio::time::Instant;

use crate::{Breaker, bits::Bits, pass::Pass, shared::Entry};

/// What a call that was let through holds while it runs. Dropped without a verdict it says
/// nothing about the server, and gives the place of a probe back.
#[derive(Debug)]
#[allow(unnameable_types, reason = "for the sealed `Select` only")]
pub struct Ticket {
    /// `None` once there is a verdict, and where the breaker is off.
    breaker: Option<Arc<Breaker>>,
    pass: Pass,
}

/// One service's hold on its circuit.
///
/// A call keeps one count of this and none of the circuit itself, since a counter that all
/// services share is what costs once two threads use it. A clone of the service borrows the
/// hold of its original for its first call, and makes its own for the second: a clone made
/// for one call allocates nothing, one that stays shares no counter with others.
#[derive(Debug)]
pub(crate) struct Seat {
    breaker: Arc<Breaker>,
    hold: Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Own,
    Borrowed,
    BorrowedOnce,
}

/// What becomes of a call.
pub(crate) enum Admitted {
    In(Ticket),
    Away(Failure),
    Retired,
}

// === impl Ticket ===

impl Ticket {
    /// Of a call that no breaker looks at.
    pub(crate) const fn off() -> Self {
        Self {
            breaker: None,
            pass: Bits::NEW.pass(),
        }
    }

    #[inline]
    pub(crate) fn start(&self) -> Option<Instant> {
        self.breaker.as_ref()?.shared().start()
    }

    #[inline]
    pub(crate) fn succeeded(&mut self, started: Option<Instant>) {
        if let Some(breaker) = &self.breaker {
            breaker.shared().succeeded(self.pass, started);
            self.breaker = None;
        }
    }

    pub(crate) fn failed<E: Classified>(&mut self, started: Option<Instant>, error: &mut E) {
        if let Some(breaker) = &self.breaker {
            breaker.shared().failed(self.pass, started, error);
            self.breaker = None;
        }
    }
}

impl Drop for Ticket {
    #[inline]
    fn drop(&mut self) {
        if let Some(breaker) = self.breaker.as_ref().filter(|_| self.pass.is_probe()) {
            breaker.shared().release(self.pass);
        }
    }
}

// === impl Seat ===

impl Seat {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Self {
            breaker: Arc::new(breaker),
            hold: Hold::Own,
        }
    }

    /// A hold that is somebody else's, for the first call.
    pub(crate) const fn borrowed(breaker: Arc<Breaker>) -> Self {
        Self {
            breaker,
            hold: Hold::Borrowed,
        }
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    #[inline]
    pub(crate) fn admit(&mut self) -> Admitted {
        if let Some(pass) = self.breaker.shared().pass() {
            return Admitted::In(self.ticket(pass));
        }
        match self.breaker.shared().admit() {
            Entry::Pass(pass) => Admitted::In(self.ticket(pass)),
            Entry::Away(failure) => Admitted::Away(failure),
            Entry::Retired => Admitted::Retired,
        }
    }

    #[inline]
    fn ticket(&mut self, pass: Pass) -> Ticket {
        Ticket {
            pass,
            breaker: Some(self.share()),
        }
    }

    /// For one more call.
    #[inline]
    fn share(&mut self) -> Arc<Breaker> {
        match self.hold {
            Hold::Own => {}
            Hold::Borrowed => self.hold = Hold::BorrowedOnce,
            Hold::BorrowedOnce => *self = Self::new(self.breaker().clone()),
        }
        Arc::clone(&self.breaker)
    }
}

impl Clone for Seat {
    fn clone(&self) -> Self {
        Self::borrowed(Arc::clone(&self.breaker))
    }
}
