//! What goes wrong in other libraries and was seen in their code rather than run.

mod support;

use std::{
    future::Future,
    pin::pin,
    sync::{Barrier, mpsc},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use steadfast_circuit_breaker::{Breaker, CircuitBreakerLayer, OpenFor, Settings, State};
use steadfast_classify::{Class, Failure};
use support::{Circuit, secs};
use tokio::time::advance;
use tower::{Layer, Service, service_fn};

/// Results go through a channel of bounded size, and when that is full they are dropped: the
/// breaker is blind when it is needed most.
#[test]
fn trap_linkerd_every_failure_counts_however_many_end_at_once() {
    let settings = Settings::new().with_consecutive_failures(1_000);
    let layer = CircuitBreakerLayer::new("server", settings).unwrap();
    let down = service_fn(|()| async { Err::<(), _>(Failure::new(Class::Unknown)) });

    for _ in 0..200 {
        layer.breaker().reset();
        let start = &Barrier::new(3);
        thread::scope(|scope| {
            for mut service in [(); 3].map(|()| layer.layer(down)) {
                scope.spawn(move || {
                    start.wait();
                    (0..333).for_each(|_| fail(&mut service));
                });
            }
        });

        assert_eq!(layer.breaker().snapshot().consecutive_failures, 999);
        fail(&mut layer.layer(down));
        assert_eq!(layer.breaker().state(), State::Open);
    }
}

/// Something that everybody needs is held while the call underneath is polled.
#[test]
fn trap_recloser_nothing_is_held_while_the_call_is_polled() {
    let settings = Settings::new().with_failure_rate(0.5);
    let layer = CircuitBreakerLayer::new("server", settings).unwrap();
    let used = layer.breaker().clone();
    let meddles = service_fn(move |()| {
        let breaker = used.clone();
        async move {
            use_it(&breaker);
            Ok::<_, Failure>(())
        }
    });
    let mut service = layer.layer(meddles);

    in_time(move || assert!(matches!(poll(&mut service), Poll::Ready(Ok(())))));

    assert_eq!(layer.breaker().state(), State::Closed);
}

/// The break that a function computes is told, and the one in the settings is kept.
#[tokio::test(start_paused = true)]
async fn trap_polly_the_open_time_that_is_told_is_the_one_that_is_kept() {
    let open_for = OpenFor::with(|trips, _, _| secs(7 * u64::from(trips)));
    let mut circuit = Circuit::opened(Settings::new().with_open_for(open_for)).await;

    for (trips, open_for) in [(1, 7), (2, 14)] {
        let told = circuit.breaker().watch().current();
        assert_eq!((told.trips, told.open_for), (trips, Some(secs(open_for))));
        advance(secs(open_for - 1)).await;
        assert_eq!(circuit.rejected().retry_in(), Some(secs(1)));
        advance(secs(1)).await;
        circuit.fail(1, Class::Unknown).await;
    }
}

/// Uses a circuit in every way there is, and leaves it closed.
fn use_it(breaker: &Breaker) {
    breaker.isolate();
    breaker.observe_only(true);
    breaker.observe_only(false);
    assert_eq!(breaker.snapshot().state, State::Isolated);
    assert_eq!(breaker.watch().current().to, State::Isolated);
    breaker.reset();
}

fn fail<S>(service: &mut S)
where
    S: Service<(), Error = Failure>,
{
    assert!(matches!(poll(service), Poll::Ready(Err(_))));
}

fn poll<S: Service<()>>(service: &mut S) -> Poll<Result<S::Response, S::Error>> {
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    pin!(service.call(())).poll(&mut context)
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
