//! The standard chain.

use std::fmt;

use steadfast_classify::Recoverable;

use crate::{
    ChainTicket, InvalidSettings, Mark, Recover, Settings, Store, Tagged, Untagged, handle::Handle,
    ticket::Part,
};

/// The standard chain: the last good answer, the caller's default, a response that says
/// "unavailable", the failure as it is.
///
/// A clone uses the same store. `M` says how an answer carries its source: [`Tagged`]
/// (the default), [`Untagged`], or a [`Mark`] of your own.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_fallback::{Bounds, Chain, FallbackLayer, Memory, Settings};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Memory::new(Bounds::default(), String::len)?;
/// let settings = Settings::new().with_max_stale(Duration::from_secs(60));
/// let layer = FallbackLayer::new(Chain::new(settings, store)?.untagged());
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
pub struct Chain<St, M = Tagged> {
    mark: M,
    store: Handle<St>,
}

// === impl Chain ===

impl<St> Chain<St> {
    /// A chain that begins with what this store keeps.
    ///
    /// # Errors
    ///
    /// If a setting cannot be; the error names it and what is allowed.
    pub fn new(settings: Settings, store: St) -> Result<Self, InvalidSettings> {
        Ok(Self::checked(settings.check()?, store))
    }

    /// A chain with the default settings that begins with what this store keeps.
    #[must_use]
    pub fn standard(store: St) -> Self {
        Self::checked(Settings::new(), store)
    }

    /// A chain with settings that are valid.
    pub(crate) fn checked(settings: Settings, store: St) -> Self {
        Self {
            mark: Tagged,
            store: Handle::new(store, settings),
        }
    }
}

impl<St, M> Chain<St, M> {
    /// The same chain for answers that cannot carry a tag.
    #[must_use]
    pub fn untagged(self) -> Chain<St, Untagged> {
        self.with_mark(Untagged)
    }

    /// The same chain with another way to tag.
    #[must_use]
    pub fn with_mark<N>(self, mark: N) -> Chain<St, N> {
        Chain {
            mark,
            store: self.store,
        }
    }

    /// The store, to look into it or to make a server's answers stale.
    #[must_use]
    pub fn store(&self) -> &St {
        &self.store
    }
}

impl<St, M, R> Recover<R, St::Value> for Chain<St, M>
where
    St: Store,
    St::Value: Clone,
    M: Mark<St::Value> + Clone,
    R: Recoverable<St::Value>,
{
    type Ticket = ChainTicket<St, M>;

    fn begin(&mut self, request: &R) -> ChainTicket<St, M> {
        let mark = self.mark.clone();
        if !self.store.settings().enabled {
            return ChainTicket::new(mark, Part::Off, None, None);
        }
        let deadline = request.context().and_then(|context| context.deadline());
        let part = Part::new(self.store.for_call(), request);
        ChainTicket::new(mark, part, request.default_answer(), deadline)
    }
}

impl<St, M: Clone> Clone for Chain<St, M> {
    fn clone(&self) -> Self {
        Self {
            mark: self.mark.clone(),
            store: self.store.clone(),
        }
    }
}

impl<St, M> fmt::Debug for Chain<St, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("settings", &self.store.settings())
            .finish_non_exhaustive()
    }
}
