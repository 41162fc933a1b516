//! What a call needs besides the service it was made on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::RetryLayer;

/// What a call needs besides the service it was made on, should it have to be repeated.
///
/// The first attempt runs on the service that was made ready, in place. Giving each call
/// a clone of that service, for a retry that mostly is not needed, would count up and
/// down everything the service shares with its other clones, which is what costs once two
/// threads do it. So a call holds one count of this instead.
pub(crate) struct Shared<S, B: ?Sized> {
    /// Cloned by a retry, called by nobody. In a mutex, because a service need not be
    /// [`Sync`] to be used by a task that moves between threads.
    spare: Mutex<S>,
    pub(crate) layer: RetryLayer<B>,
}

/// One service's hold on its [`Shared`].
///
/// A clone of the service borrows that of its original for its first call, and makes its
/// own for the second: a clone made for one call allocates nothing, one that stays shares
/// no counter with others.
pub(crate) struct Handle<S, B: ?Sized> {
    shared: Arc<Shared<S, B>>,
    hold: Hold,
}

#[derive(Clone, Copy)]
enum Hold {
    Own,
    Borrowed,
    BorrowedOnce,
}

// === impl Shared ===

impl<S: Clone, B: ?Sized> Shared<S, B> {
    fn new(spare: S, layer: RetryLayer<B>) -> Arc<Self> {
        Arc::new(Self {
            spare: Mutex::new(spare),
            layer,
        })
    }

    /// A service for the next attempt, yet to be made ready.
    pub(crate) fn service(&self) -> S {
        // A panic in `clone` leaves the spare as it was.
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

// === impl Handle ===

impl<S: Clone, B: ?Sized> Handle<S, B> {
    pub(crate) fn new(spare: S, layer: RetryLayer<B>) -> Self {
        Self {
            shared: Shared::new(spare, layer),
            hold: Hold::Own,
        }
    }

    /// For one more call.
    pub(crate) fn share(&mut self) -> Arc<Shared<S, B>> {
        match self.hold {
            Hold::Own => {}
            Hold::Borrowed => self.hold = Hold::BorrowedOnce,
            Hold::BorrowedOnce => {
                let layer = self.shared.layer.clone();
                *self = Self::new(self.shared.service(), layer);
            }
        }
        Arc::clone(&self.shared)
    }
}

impl<S, B: ?Sized> Handle<S, B> {
    /// To look at; a call takes a [`share`](Self::share).
    pub(crate) fn shared(&self) -> &Shared<S, B> {
        &self.shared
    }
}

impl<S, B: ?Sized> Clone for Handle<S, B> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            hold: Hold::Borrowed,
        }
    }
}
