//! The attempts of one call, and the request they send.

use std::{ops::ControlFlow, time::Duration};

use steadfast_classify::{Call, CallContext, Classified, Effect, Failure, IdempotencyKey};
use tokio::time::Instant;
use tower::retry::budget::Budget;

use crate::{
    RetryLayer, observe,
    verdict::{Attempted, Reason, Verdict, judge},
};

/// The attempts of one call, and the request they send.
pub(crate) struct Attempts<R> {
    /// Cloned by each attempt that another may follow, taken by the last one.
    template: Option<R>,
    effect: Effect,
    max_retries: u32,
    /// The one that is running or about to, from 1.
    current: u32,
    /// How many were made; one in which a service below retried counts as many as it made.
    made: u32,
    may_have_run: bool,
}

// === impl Attempts ===

impl<R: Call> Attempts<R> {
    /// The attempts of this call, none of which was made yet. A key is asked for only if
    /// the call has a place for one and has none.
    pub(crate) fn new(
        mut request: R,
        default_retries: u32,
        key: impl FnOnce() -> IdempotencyKey,
    ) -> Self {
        // Before it gets a key: one that we made says nothing about what repeating does.
        let effect = request.effect();
        let mut max_retries = default_retries;
        if let Some(context) = request.context_mut() {
            if let Some(retries) = context.limits().and_then(|limits| limits.max_retries) {
                max_retries = retries;
            }
            if context.idempotency_key().is_none() {
                context.set_idempotency_key(key());
            }
            if max_retries > 0 {
                // A flight proves the delivery of one attempt. One that was made outside
                // would prove the first, and be asked about all.
                drop(context.take_flight());
            }
        }
        Self {
            template: Some(request),
            effect,
            max_retries,
            current: 1,
            made: 0,
            may_have_run: false,
        }
    }

    /// Judges the error of the current attempt: go on after a wait, or give this back.
    /// `called` is false if the service failed to become ready for it.
    ///
    /// Where it goes on, the error is gone before the wait begins.
    pub(crate) fn failed<E, B>(
        &mut self,
        error: E,
        called: bool,
        layer: &RetryLayer<B>,
    ) -> ControlFlow<E, Duration>
    where
        E: Classified,
        B: Budget + ?Sized,
    {
        let seen = self.attempted(error.failure(), called);
        let made = seen.failure.map_or(1, Failure::attempts);
        self.made = self.made.saturating_add(made);
        self.may_have_run |= seen.may_have_run();
        match verdict(&seen, layer) {
            Verdict::Retry(wait) => {
                observe::retrying(&seen, wait);
                self.current = self.current.saturating_add(1);
                return ControlFlow::Continue(wait);
            }
            Verdict::Stop(reason) => observe::gave_up(&seen, reason),
            Verdict::Final => {}
        }
        ControlFlow::Break(self.noted(error))
    }

    /// Notes that the current attempt succeeded.
    pub(crate) fn succeeded(&self) {
        if self.current > 1 {
            observe::recovered(self.current);
        }
    }

    fn attempted<'a>(&self, failure: Option<&'a Failure>, called: bool) -> Attempted<'a> {
        let context = self.template.as_ref().and_then(Call::context);
        let deadline = context.and_then(CallContext::deadline);
        Attempted {
            failure,
            called,
            effect: self.effect,
            attempt: self.current,
            max_retries: self.max_retries,
            remaining: deadline.map(|at| at.saturating_duration_since(Instant::now())),
        }
    }

    /// Writes into the last error what is known about all attempts.
    fn noted<E: Classified>(&self, mut error: E) -> E {
        if let Some(failure) = error.failure_mut() {
            failure.set_attempts(self.made);
            if failure.may_have_run() != self.may_have_run {
                // It knows of the last attempt, and may not know that this was not called.
                *failure = failure.clone().with_may_have_run(self.may_have_run);
            }
        }
        error
    }
}

impl<R: Call + Clone> Attempts<R> {
    /// The request of the current attempt.
    pub(crate) fn request(&mut self) -> R {
        let last = self.current > self.max_retries;
        let request = if last {
            self.template.take()
        } else {
            self.template.clone()
        };
        let mut request = request.expect("only the last attempt takes the template");
        if let Some(context) = request.context_mut() {
            context.set_attempt(self.current);
        }
        request
    }
}

/// The verdict of the settings, and then of the budget: asked last, only an attempt that
/// would be made is paid for. One that only lost its session is free: nothing was worked on,
/// and all calls of a session lose it at once.
fn verdict<B>(seen: &Attempted<'_>, layer: &RetryLayer<B>) -> Verdict
where
    B: Budget + ?Sized,
{
    match judge(seen, &layer.settings, || layer.random.unit()) {
        Verdict::Retry(wait) if seen.lost_its_session() => Verdict::Retry(wait),
        Verdict::Retry(_) if !layer.budget.withdraw() => Verdict::Stop(Reason::Budget),
        verdict => verdict,
    }
}
