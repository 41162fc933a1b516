//! The one timer of a call.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use pin_project::pin_project;
use tokio::{
    task::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

/// A timer that exists only from the moment it is armed.
#[pin_project]
#[derive(Default)]
pub(crate) struct Timer {
    #[pin]
    sleep: Option<Sleep>,
}

// === impl Timer ===

impl Timer {
    pub(crate) const fn is_armed(&self) -> bool {
        self.sleep.is_some()
    }

    /// Fires at `at`, whenever it was to fire before.
    pub(crate) fn arm(self: Pin<&mut Self>, at: Instant) {
        let mut sleep = self.project().sleep;
        match sleep.as_mut().as_pin_mut() {
            Some(armed) => armed.reset(at),
            None => sleep.set(Some(sleep_until(at))),
        }
    }

    /// Ready once it fired, pending while it has not or is not armed.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project().sleep.as_pin_mut() {
            // An inner future that always uses up the budget of its task must not be
            // able to keep the timer from being looked at.
            Some(sleep) => pin!(unconstrained(sleep)).poll(cx),
            None => Poll::Pending,
        }
    }
}
