//! Which circuit a request goes by.

use steadfast_classify::Failure;

use crate::{
    Breaker,
    ticket::{Admitted, Seat, Ticket},
};

/// Says which circuit a request goes by. Implemented by [`Single`] and
/// [`Keyed`](crate::Keyed), and by `Option` of both, where `None` is a breaker that is
/// switched off. It cannot be implemented elsewhere.
pub trait Select<R>: Admit<R> {}

impl<R, Sel: Admit<R>> Select<R> for Sel {}

#[allow(unnameable_types, reason = "it seals `Select`")]
pub trait Admit<R> {
    fn admit(&mut self, request: &R) -> Result<Ticket, Failure>;
}

/// One circuit for all requests.
#[derive(Clone, Debug)]
pub struct Single(Seat);

// === impl Single ===

impl Single {
    pub(crate) fn new(breaker: Breaker) -> Self {
        Self(Seat::new(breaker))
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        self.0.breaker()
    }
}

impl<R> Admit<R> for Single {
    #[inline]
    fn admit(&mut self, _: &R) -> Result<Ticket, Failure> {
        match self.0.admit() {
            Admitted::In(ticket) => Ok(ticket),
            Admitted::Away(failure) => Err(failure),
            // Only a registry retires circuits, and handles of those make no `Single`.
            Admitted::Retired => Ok(Ticket::off()),
        }
    }
}

impl<R, Sel: Admit<R>> Admit<R> for Option<Sel> {
    fn admit(&mut self, request: &R) -> Result<Ticket, Failure> {
        match self {
            Some(select) => select.admit(request),
            None => Ok(Ticket::off()),
        }
    }
}
