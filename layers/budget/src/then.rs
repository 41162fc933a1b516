//! One limit after another.

use crate::{Admit, Keyed, Patience, Verdict};

/// One limit after another: a call has to pass both.
///
/// What it paid to the first is not given back if the second one rejects it, so the
/// limit that one caller alone can exhaust comes first, and the global one last: else a
/// single session would use up what is meant for all by calls that are then rejected. A
/// call that waits at the second has paid the first, and does not pay it again.
#[derive(Clone, Copy, Debug)]
pub struct Then<A, B> {
    first: A,
    then: B,
}

/// How far a call has come through a [`Then`].
#[derive(Debug)]
pub struct Progress<A, B>(Stage<A, B>);

#[derive(Debug)]
enum Stage<A, B> {
    First(A),
    Then(B),
}

// === impl Then ===

impl<A, B> Then<A, B> {
    pub(crate) const fn new(first: A, then: B) -> Self {
        Self { first, then }
    }
}

impl<A, K, F> Then<A, Keyed<K, F>> {
    /// Adds the limit that a call has to pass after these: another keyed one, or the
    /// global one, after which there is none.
    #[must_use]
    pub fn then<N>(self, next: N) -> Then<Self, N> {
        Then::new(self, next)
    }
}

impl<A, B, R> Admit<R> for Then<A, B>
where
    A: Admit<R>,
    B: Admit<R>,
{
    type Ticket = Progress<A::Ticket, B::Ticket>;

    fn admit(&self, request: &R, progress: &mut Self::Ticket, patience: Patience<'_>) -> Verdict {
        let Progress(stage) = progress;
        loop {
            match stage {
                // First => (First | Then)
                Stage::First(ticket) => match self.first.admit(request, ticket, patience) {
                    Verdict::Admitted => *stage = Stage::Then(B::Ticket::default()),
                    verdict => return verdict,
                },
                // Then => (Then | end)
                Stage::Then(ticket) => return self.then.admit(request, ticket, patience),
            }
        }
    }
}

// === impl Progress ===

impl<A, B> Default for Progress<A, B>
where
    A: Default,
{
    fn default() -> Self {
        Self(Stage::First(A::default()))
    }
}
