//! A stack that was checked, and the service it makes.

use std::{sync::Arc, time::Duration};

use steadfast_budget::{Budget, BudgetLayer, RetryBudget};
use steadfast_circuit_breaker::{CircuitBreaker, CircuitBreakerLayer};
use steadfast_classify::{Call, Classified, Failure};
use steadfast_fallback::{Fallback, FallbackLayer};
use steadfast_retry::{NoBudget, Retry, RetryLayer};
use steadfast_timeout::{Deadline, DeadlineLayer, Timeout, TimeoutLayer};
use tower_layer::Layer;
use tower_service::Service;

use crate::stack::{InvalidStack, Retries, Stack};

/// The service that a [`Stack`] makes: its layers, outermost first, around `S`.
pub type StackService<S, P, A, Sel> = Fallback<
    Deadline<Budget<Retry<CircuitBreaker<Timeout<S>, Option<Sel>>, Retries>, Option<A>>>,
    P,
>;

/// A stack that was checked. All services it makes share its circuits, budgets and
/// last good answers; one per session, cloned for nobody else, is the cheapest.
#[derive(Clone, Debug)]
pub struct StackLayer<P, A, Sel> {
    fallback: FallbackLayer<P>,
    policy: P,
    deadline: DeadlineLayer,
    budget: BudgetLayer<Option<A>>,
    retry: RetryLayer<Retries>,
    breaker: CircuitBreakerLayer<Option<Sel>>,
    breakers: Option<CircuitBreakerLayer<Sel>>,
    timeout: TimeoutLayer,
}

// === impl Stack ===

impl<P: Clone, A, Sel: Clone> Stack<P, A, Sel> {
    /// Checks the settings, each for itself and all together.
    ///
    /// # Errors
    ///
    /// A setting that is wrong by itself; a connect, read or attempt limit above the time
    /// of the whole call, which would never be reached; a probe's lease below connect and
    /// read together, which would let a second probe through while the first still runs.
    pub fn build(self) -> Result<StackLayer<P, A, Sel>, InvalidStack> {
        self.check()?;
        let retries: Arc<Retries> = match self.retry_budget {
            Some(settings) => Arc::new(RetryBudget::new(settings)?),
            None => Arc::new(NoBudget),
        };
        let breakers = self.breaker.map(|breaker| breaker.layer).transpose()?;
        Ok(StackLayer {
            fallback: FallbackLayer::new(self.fallback.clone()),
            policy: self.fallback,
            // The timeout layer ends each attempt at the deadline, and nothing in between
            // waits past it: one timer per call is enough.
            deadline: DeadlineLayer::new(self.total)?.stamp_only(),
            budget: BudgetLayer::new(self.admission).with_max_wait(self.max_wait),
            retry: RetryLayer::new(self.retry)?.with_budget(retries),
            breaker: CircuitBreakerLayer::optional(breakers.clone()),
            breakers,
            timeout: TimeoutLayer::new(self.timeout)?,
        })
    }

    fn check(&self) -> Result<(), InvalidStack> {
        let limits = [
            ("connect", Some(self.timeout.connect)),
            ("read", Some(self.timeout.read)),
            ("attempt", self.timeout.attempt),
        ];
        for (field, limit) in limits {
            // A limit that is off is not meant to be reached.
            let limit = limit.filter(|limit| *limit != Duration::MAX);
            if let Some(limit) = limit.filter(|limit| *limit > self.total) {
                let total = self.total;
                return Err(InvalidStack::NeverReached {
                    field,
                    limit,
                    total,
                });
            }
        }
        let attempt = self.timeout.connect.saturating_add(self.timeout.read);
        match &self.breaker {
            Some(breaker) if attempt != Duration::MAX && breaker.probe_lease < attempt => {
                Err(InvalidStack::ShortLease {
                    lease: breaker.probe_lease,
                    attempt,
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}

// === impl StackLayer ===

impl<P, A, Sel> StackLayer<P, A, Sel> {
    /// The same as [`Layer::layer`], for requests of type `R`: the compiler then says at
    /// this line what `inner` or the request lacks, rather than at the first call.
    pub fn around<R, S>(&self, inner: S) -> StackService<S, P, A, Sel>
    where
        S: Service<R> + Clone,
        S::Error: Classified + From<Failure>,
        R: Call + Clone,
        P: Clone,
        A: Clone,
        Sel: Clone,
    {
        self.layer(inner)
    }

    /// Its circuits: to look at, to watch, to isolate by hand. `None` if switched off.
    #[must_use]
    pub const fn breakers(&self) -> Option<&CircuitBreakerLayer<Sel>> {
        self.breakers.as_ref()
    }

    /// Its fallback.
    #[must_use]
    pub const fn fallback(&self) -> &P {
        &self.policy
    }
}

impl<S, P, A, Sel> Layer<S> for StackLayer<P, A, Sel>
where
    S: Clone,
    P: Clone,
    A: Clone,
    Sel: Clone,
{
    type Service = StackService<S, P, A, Sel>;

    fn layer(&self, inner: S) -> Self::Service {
        // Innermost. Ends one attempt, and proves what it can of its delivery.
        let service = self.timeout.layer(inner);
        // Around the timeout, so that a call that ran out of time counts as a failure;
        // inside the retry, so that it counts attempts and can end the retry's loop.
        let service = self.breaker.layer(service);
        // Repeats what may be repeated, one attempt at a time.
        let service = self.retry.layer(service);
        // Around the retry, so that it counts calls and not attempts.
        let service = self.budget.layer(service);
        // Around everything that waits: no wait may outlive it.
        let service = self.deadline.layer(service);
        // Outermost: what it gives in place of a failure must be no layer's success.
        self.fallback.layer(service)
    }
}
