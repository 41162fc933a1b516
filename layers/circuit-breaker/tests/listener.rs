//! Whoever is told of a circuit uses it there and then. By itself in this file: events of
//! tests beside it, which nobody hears, would be taken for ones that nobody wants.

use std::{
    future::Future,
    pin::pin,
    sync::mpsc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use steadfast_circuit_breaker::{Breaker, CircuitBreakerLayer, Settings, State};
use steadfast_classify::{Class, Failure};
use tower::{Layer, Service, service_fn};
use tracing::{Event, Metadata, Subscriber, span};

/// Uses the circuit whenever it is told something.
struct Meddler(Breaker);

// === impl Meddler ===

impl Subscriber for Meddler {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast_circuit_breaker")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        let breaker = &self.0;
        assert_eq!(breaker.state(), State::Open);
        assert_eq!(breaker.snapshot().state, State::Open);
        assert_eq!(breaker.watch().current().to, State::Open);
        breaker.isolate();
        breaker.reset();
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Listeners run under the lock, and one that looks at the circuit stops everybody.
#[test]
fn trap_tr_whoever_is_told_may_use_the_circuit() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let breaker = layer.breaker().clone();
    let down = service_fn(|()| async { Err::<(), _>(Failure::new(Class::Unknown)) });
    let mut service = layer.layer(down);

    in_time(move || {
        tracing::subscriber::with_default(Meddler(breaker), || {
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..5 {
                assert!(service.poll_ready(&mut context).is_ready());
                let ended = pin!(service.call(())).poll(&mut context);
                assert!(matches!(ended, Poll::Ready(Err(_))));
            }
        });
    });

    // It was told of the fifth, and closed the circuit again before that call returned.
    let seen = layer.breaker().snapshot();
    assert_eq!((seen.state, seen.consecutive_failures), (State::Closed, 0));
}

/// What comes back to a lock that it holds never ends; this does.
fn in_time(work: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        work();
        drop(done);
    });
    // Nothing is ever sent: the sender goes at the end, or with a panic.
    let ended = end.recv_timeout(Duration::from_secs(30));
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "it hangs");
    assert!(worker.join().is_ok());
}
