//! One call of the inner service, its readiness included.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project::pin_project;
use tower_service::Service;

/// An instance of the inner service that is made ready and then called.
#[pin_project(project = Projected, project_replace = Replaced)]
pub(crate) enum Attempt<S, R, F> {
    /// Being made ready.
    Waiting { inner: S, request: R },
    /// Called.
    Called {
        #[pin]
        response: F,
    },
    /// Answered or given up; whatever it held is dropped.
    Over,
}

// === impl Attempt ===

impl<S, R, F> Attempt<S, R, F> {
    /// Whether the inner service was not called yet.
    pub(crate) const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting { .. })
    }

    /// The state, for a `Debug` that shows nothing of the request.
    pub(crate) const fn state(&self) -> &'static str {
        match self {
            Self::Waiting { .. } => "waiting",
            Self::Called { .. } => "called",
            Self::Over => "over",
        }
    }
}

impl<S, R> Attempt<S, R, S::Future>
where
    S: Service<R>,
{
    pub(crate) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<S::Response, S::Error>> {
        // Waiting => (Waiting | Called | Over)
        if let Projected::Waiting { inner, .. } = self.as_mut().project() {
            if let Err(error) = ready!(inner.poll_ready(cx)) {
                self.set(Self::Over);
                return Poll::Ready(Err(error));
            }
            let ready = self.as_mut().project_replace(Self::Over);
            if let Replaced::Waiting { mut inner, request } = ready {
                let response = inner.call(request);
                self.set(Self::Called { response });
            }
        }
        // Called => (Called | Over)
        let Projected::Called { response } = self.as_mut().project() else {
            panic!("a response future was polled after its end");
        };
        let result = ready!(response.poll(cx));
        self.set(Self::Over);
        Poll::Ready(result)
    }
}
