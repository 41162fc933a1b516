//! What is gone, and when.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use steadfast_classify::{Class, Effect, Failure, Phase};
use tokio::time::{Sleep, advance, sleep};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, limit::ConcurrencyLimit};

mod support;
use support::{Request, even, layer, ms};

/// What happened on the wire, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

/// Answers never, and times out after 300 ms; dropped before, it sends a cancel, like a
/// connection would.
#[derive(Clone)]
struct Slow {
    log: Log,
    alive: Arc<AtomicUsize>,
}

struct Attempt {
    sleep: Pin<Box<Sleep>>,
    slow: Slow,
}

// === impl Log ===

impl Log {
    fn push(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

// === impl Slow ===

impl Slow {
    fn new() -> Self {
        Self {
            log: Log::default(),
            alive: Arc::default(),
        }
    }
}

impl Service<Request> for Slow {
    type Response = &'static str;
    type Error = Failure;
    type Future = Attempt;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Attempt {
        let before = self.alive.fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "two attempts alive at once");
        self.log.push("call");
        Attempt {
            sleep: Box::pin(sleep(ms(300))),
            slow: self.clone(),
        }
    }
}

// === impl Attempt ===

impl Future for Attempt {
    type Output = support::Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.sleep
            .as_mut()
            .poll(cx)
            .map(|()| Err(Failure::new(Class::Timeout).with_phase(Phase::Read)))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.slow.alive.fetch_sub(1, Ordering::Relaxed);
        self.slow.log.push("cancel");
    }
}

#[tokio::test(start_paused = true)]
async fn d04_the_cancel_precedes_each_replay_layers() {
    let layer = layer(even().with_max_retries(2));
    for (effect, want) in [
        (Effect::NonIdempotent, &["call", "cancel"][..]),
        (
            Effect::Idempotent,
            &["call", "cancel", "call", "cancel", "call", "cancel"],
        ),
    ] {
        let slow = Slow::new();
        let service = layer.layer(slow.clone());

        let result = tower::ServiceExt::oneshot(service, Request::new(effect)).await;

        let failure = result.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout);
        assert!(failure.may_have_run());
        assert_eq!(slow.log.take(), want, "{effect}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_p9_neither_attempt_nor_error_is_held_during_the_wait() {
    let slow = Slow::new();
    let body = Arc::new(Body);
    let inner = {
        let body = Arc::clone(&body);
        let carry = move |error: Failure| error.with_source(Carrying(Arc::clone(&body)));
        tower::ServiceExt::<Request>::map_err(slow.clone(), carry)
    };
    let mut service = layer(even()).layer(inner);
    let held_by_nobody = Arc::strong_count(&body);
    let mut call = task::spawn(service.call(Request::read()));
    assert_pending!(call.poll());

    advance(ms(300)).await;
    assert_pending!(call.poll());

    assert_eq!(slow.log.take(), ["call", "cancel"], "the attempt is gone");
    assert_eq!(slow.alive.load(Ordering::Relaxed), 0);
    assert_eq!(Arc::strong_count(&body), held_by_nobody, "so is its error");
}

/// An error that holds something.
#[derive(Debug, thiserror::Error)]
#[error("with a body")]
struct Carrying(#[allow(dead_code, reason = "is held, not read")] Arc<Body>);

/// The body of a failed response.
#[derive(Debug)]
struct Body;

#[tokio::test(start_paused = true)]
async fn a_permit_of_the_inner_service_is_free_during_the_wait() {
    let mut service = layer(even()).layer(ConcurrencyLimit::new(Slow::new(), 1));
    let mut other = service.clone();
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert_ready_ok!(Service::<Request>::poll_ready(&mut service, &mut cx));
    let mut call = task::spawn(service.call(Request::read()));
    assert_pending!(call.poll());
    assert_pending!(Service::<Request>::poll_ready(&mut other, &mut cx));

    advance(ms(300)).await;
    assert_pending!(call.poll());

    assert_ready_ok!(Service::<Request>::poll_ready(&mut other, &mut cx));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_leaves_nothing_running() {
    // In the first attempt, in the wait, in the second attempt, in its wait.
    for (after, want) in [
        (0, &["call", "cancel"][..]),
        (299, &["call", "cancel"]),
        (350, &["call", "cancel"]),
        (450, &["call", "cancel", "call", "cancel"]),
        (750, &["call", "cancel", "call", "cancel"]),
    ] {
        let slow = Slow::new();
        let mut service = layer(even()).layer(ConcurrencyLimit::new(slow.clone(), 1));
        let mut other = service.clone();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert_ready_ok!(Service::<Request>::poll_ready(&mut service, &mut cx));
        let mut call = task::spawn(service.call(Request::read()));
        for _ in 0..after {
            assert_pending!(call.poll());
            advance(ms(1)).await;
        }
        assert_pending!(call.poll());

        drop(call);
        advance(ms(60_000)).await;

        assert_eq!(slow.log.take(), want, "dropped after {after} ms");
        assert_ready_ok!(Service::<Request>::poll_ready(&mut other, &mut cx));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_never_polled_leaves_nothing_running() {
    let slow = Slow::new();
    let mut service = layer(even()).layer(slow.clone());

    drop(service.call(Request::read()));

    assert_eq!(slow.log.take(), ["call", "cancel"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_outlives_the_service_it_was_made_on() {
    let slow = Slow::new();
    let mut service = layer(even().with_max_retries(1)).layer(slow.clone());
    let mut call = task::spawn(service.call(Request::read()));
    drop(service);

    for _ in 0..700 {
        assert_pending!(call.poll());
        advance(ms(1)).await;
    }

    assert_eq!(assert_ready_err!(call.poll()).attempts(), 2);
}
