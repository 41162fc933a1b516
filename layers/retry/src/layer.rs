//! The layer that retries.

use std::{fmt, sync::Arc};

use tower::retry::budget::Budget;
use tower_layer::Layer;

use crate::{InvalidSettings, NoBudget, Retry, Settings, random::Random};

/// Repeats failed calls where that is safe and may help. See the [crate](crate).
///
/// All services that a layer and its clones make share one budget and one stream of
/// random numbers, so that no two of them wait equally long.
pub struct RetryLayer<B: ?Sized = NoBudget> {
    pub(crate) settings: Settings,
    pub(crate) random: Arc<Random>,
    pub(crate) budget: Arc<B>,
}

// === impl RetryLayer ===

impl RetryLayer {
    /// A layer with these settings and no budget.
    ///
    /// # Errors
    ///
    /// If [`Settings::max_wait`] is below the cap of the backoff.
    pub fn new(settings: Settings) -> Result<Self, InvalidSettings> {
        let (cap, max_wait) = (settings.backoff.cap(), settings.max_wait);
        if max_wait < cap {
            return Err(InvalidSettings::MaxWait { cap, max_wait });
        }
        Ok(Self::unchecked(settings))
    }

    fn unchecked(settings: Settings) -> Self {
        Self {
            settings,
            random: Arc::new(Random::new()),
            budget: Arc::new(NoBudget),
        }
    }
}

impl<B: ?Sized> RetryLayer<B> {
    /// Bounds retries by a budget that may be shared with other layers: each call puts
    /// something in, each retry takes something out, and one that is refused ends the
    /// call with its last error.
    ///
    /// A retry that is dropped while it waits has used its share all the same, since a
    /// [`Budget`] has no way to give it back.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use steadfast_retry::RetryLayer;
    /// use tower::retry::budget::TpsBudget;
    ///
    /// let budget = Arc::new(TpsBudget::default());
    /// let prices = RetryLayer::default().with_budget(Arc::clone(&budget));
    /// let orders = RetryLayer::default().with_budget(budget);
    /// ```
    #[must_use]
    pub fn with_budget<C: Budget + ?Sized>(self, budget: Arc<C>) -> RetryLayer<C> {
        RetryLayer {
            settings: self.settings,
            random: self.random,
            budget,
        }
    }

    /// Fixes the random numbers of jitter and keys, for tests and simulations. Without it
    /// they differ between processes.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.random = Arc::new(Random::with_seed(seed));
        self
    }

    /// What it was built with.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Default for RetryLayer {
    /// [`Settings::default`] and no budget.
    fn default() -> Self {
        Self::unchecked(Settings::new())
    }
}

impl<S, B> Layer<S> for RetryLayer<B>
where
    S: Clone,
    B: ?Sized,
{
    type Service = Retry<S, B>;

    fn layer(&self, inner: S) -> Self::Service {
        Retry::new(inner, self.clone())
    }
}

impl<B: ?Sized> Clone for RetryLayer<B> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings,
            random: Arc::clone(&self.random),
            budget: Arc::clone(&self.budget),
        }
    }
}

impl<B: ?Sized> fmt::Debug for RetryLayer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
