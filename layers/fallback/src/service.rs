//! The service that falls back.

use std::task::{Context, Poll};

use steadfast_classify::{Class, Classified, Failure};
use tower_service::Service;

use crate::{Recover, ResponseFuture, Sourced, Ticket, refusal::Refusal};

/// A service whose failures may be answered by something else. See
/// [`FallbackLayer`](crate::FallbackLayer).
///
/// `poll_ready` delegates, but for an error: that is kept, and becomes the result of the
/// next call, where it falls back like any other.
#[derive(Debug)]
pub struct Fallback<S, P> {
    inner: S,
    policy: P,
    refusal: Refusal,
}

// === impl Fallback ===

impl<S, P> Fallback<S, P> {
    /// Falls back from `inner` to what `policy` gives.
    #[must_use]
    pub const fn new(inner: S, policy: P) -> Self {
        Self {
            inner,
            policy,
            refusal: Refusal::none(),
        }
    }

    /// The service underneath.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// What decides about failures.
    #[must_use]
    pub const fn policy(&self) -> &P {
        &self.policy
    }
}

impl<S, P, R> Service<R> for Fallback<S, P>
where
    S: Service<R>,
    S::Error: Classified + From<Failure> + Send + Sync + 'static,
    P: Recover<R, S::Response>,
{
    type Response = Sourced<S::Response>;
    type Error = S::Error;
    type Future = ResponseFuture<
        S::Future,
        P::Ticket,
        <P::Ticket as Ticket<S::Response>>::Recovery,
        S::Error,
    >;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.refusal.is_some() {
            return Poll::Ready(Ok(()));
        }
        self.inner.poll_ready(cx).map(|ready| {
            if let Err(error) = ready {
                self.refusal.keep(error);
            }
            Ok(())
        })
    }

    fn call(&mut self, request: R) -> Self::Future {
        let ticket = self.policy.begin(&request);
        match self.refusal.take::<S::Error>() {
            None => ResponseFuture::calling(self.inner.call(request), ticket),
            Some(error) => {
                // Whatever the error says, the call was never made.
                let failure = error
                    .failure()
                    .cloned()
                    .unwrap_or_else(|| Failure::new(Class::NotSent))
                    .with_may_have_run(false);
                ResponseFuture::refused(ticket, error, failure)
            }
        }
    }
}

/// A clone is not ready, whether the original was or not.
impl<S: Clone, P: Clone> Clone for Fallback<S, P> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.policy.clone())
    }
}
