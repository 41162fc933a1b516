//! The layer that falls back.

use tower_layer::Layer;

use crate::{Chain, Fallback, Memory};

/// Answers failed calls by something else where the policy has it, and says of each
/// answer where it came from.
///
/// It belongs outermost: what it gives in place of a failure is nobody else's success.
/// Every service it makes shares the policy's store.
#[derive(Clone, Copy, Debug)]
pub struct FallbackLayer<P> {
    policy: P,
}

// === impl FallbackLayer ===

impl<P> FallbackLayer<P> {
    /// Falls back to what `policy` gives: a [`Chain`], a closure
    /// `Fn(&Failure) -> Option<T>`, or your own [`Recover`](crate::Recover).
    #[must_use]
    pub const fn new(policy: P) -> Self {
        Self { policy }
    }
}

impl<T> FallbackLayer<Chain<Memory<T>>>
where
    T: Send + Sync + 'static,
{
    /// The standard chain with its defaults, over a store in memory. `weigh` says how
    /// many bytes an answer takes there.
    #[must_use]
    pub fn last_good(weigh: fn(&T) -> usize) -> Self {
        Self::new(Chain::standard(Memory::standard(weigh)))
    }
}

impl<S, P: Clone> Layer<S> for FallbackLayer<P> {
    type Service = Fallback<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Fallback::new(inner, self.policy.clone())
    }
}
