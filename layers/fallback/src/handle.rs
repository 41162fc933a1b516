//! A shared store, counted where it costs nothing.

use std::{ops::Deref, sync::Arc};

use crate::Settings;

/// An instance's hold on a store that is shared by all instances.
///
/// Each call counts a [`Shared`], and a count that two threads change is what costs. So an
/// instance that is called more than once has one of its own; a clone that is made for a
/// single call takes its original's, and allocates nothing.
pub(crate) struct Handle<St> {
    shared: Shared<St>,
    calls: Calls,
}

/// A call's hold on the store.
pub(crate) struct Shared<St>(Arc<Inner<St>>);

struct Inner<St> {
    store: Arc<St>,
    /// Beside it, so that a call need not carry them.
    settings: Settings,
}

#[derive(Clone, Copy)]
enum Calls {
    /// Counted on this instance's own.
    Own,
    /// None yet, and the original's would be counted.
    NoneYet,
    /// One, counted on the original's.
    One,
}

// === impl Handle ===

impl<St> Handle<St> {
    pub(crate) fn new(store: St, settings: Settings) -> Self {
        Self::own(Arc::new(store), settings)
    }

    /// For one more call of this instance.
    pub(crate) fn for_call(&mut self) -> Shared<St> {
        match self.calls {
            Calls::Own => {}
            Calls::NoneYet => self.calls = Calls::One,
            Calls::One => {
                let store = Arc::clone(&self.shared.0.store);
                *self = Self::own(store, self.settings());
            }
        }
        Shared(Arc::clone(&self.shared.0))
    }

    pub(crate) fn settings(&self) -> Settings {
        self.shared.settings()
    }

    fn own(store: Arc<St>, settings: Settings) -> Self {
        Self {
            shared: Shared(Arc::new(Inner { store, settings })),
            calls: Calls::Own,
        }
    }
}

impl<St> Clone for Handle<St> {
    fn clone(&self) -> Self {
        Self {
            shared: Shared(Arc::clone(&self.shared.0)),
            calls: Calls::NoneYet,
        }
    }
}

impl<St> Deref for Handle<St> {
    type Target = St;

    fn deref(&self) -> &St {
        &self.shared
    }
}

// === impl Shared ===

impl<St> Shared<St> {
    pub(crate) fn settings(&self) -> Settings {
        self.0.settings
    }
}

impl<St> Deref for Shared<St> {
    type Target = St;

    fn deref(&self) -> &St {
        &self.0.store
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two calls are counted in the same place.
    fn same(one: &Shared<u8>, other: &Shared<u8>) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    #[test]
    fn a_clone_counts_on_its_own_from_its_second_call_on() {
        let mut original = Handle::new(7, Settings::new());
        let mut clone = original.clone();
        let reference = original.for_call();

        let calls = [clone.for_call(), clone.for_call(), clone.for_call()];

        assert!(same(&original.for_call(), &reference));
        assert!(same(&calls[0], &reference));
        assert!(!same(&calls[1], &reference));
        assert!(same(&calls[2], &calls[1]));
        assert_eq!(*calls[2], 7);
        assert!(std::ptr::eq(&*calls[2], &*reference));
    }
}
