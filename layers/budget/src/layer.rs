//! The layer that admits.

use std::time::Duration;

use tower_layer::Layer;

use crate::Budget;

/// Lets calls through as far as a policy admits them.
///
/// It belongs outside of any retry, so that it counts calls and not attempts. All
/// services that it makes, and those of its clones, share the limits of the policy.
#[derive(Clone, Copy, Debug)]
pub struct BudgetLayer<A> {
    admission: A,
    max_wait: Duration,
}

// === impl BudgetLayer ===

impl<A> BudgetLayer<A> {
    /// A layer that rejects at once what `admission` does not let through: a
    /// [`Global`](crate::Global) or [`Keyed`](crate::Keyed) limit, a chain of them, or
    /// any [`Admit`](crate::Admit).
    #[must_use]
    pub const fn new(admission: A) -> Self {
        Self {
            admission,
            max_wait: Duration::ZERO,
        }
    }

    /// Lets a call wait for its turn, all its limits together for at most `max_wait`, and
    /// always less than to its deadline. If its turn comes later than that, it is
    /// rejected without waiting.
    ///
    /// Default: zero, which rejects at once. The caller is told when to come back, and an
    /// agent can do something else until then.
    #[must_use]
    pub const fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }
}

impl<S, A: Clone> Layer<S> for BudgetLayer<A> {
    type Service = Budget<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Budget::new(inner, self.admission.clone()).with_max_wait(self.max_wait)
    }
}
