//! What goes wrong in other libraries.

use std::{
    future::pending,
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use futures::FutureExt;
use steadfast_classify::{BoxError, Class, Classified, Failure, Phase};
use steadfast_timeout::{DeadlineLayer, Settings, TimeoutLayer};
use tokio::time::{Instant, advance, sleep};
use tokio_test::assert_ready_ok;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_test::mock;

use crate::wire::{Ping, Req, Script, Wire, millis, ms, soon, timeout};

/// A timeout further out drops the future, and the layers in between see nothing.
#[tokio::test(start_paused = true)]
async fn trap_p5_the_deadline_reaches_the_layers_inside_as_a_result() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::new(ms(1_000)).unwrap())
        .map_result(move |result: Result<&'static str, Failure>| {
            let phase = result.as_ref().err().and_then(Failure::phase);
            record.lock().unwrap().push(phase);
            result
        })
        .layer(TimeoutLayer::default())
        .service(Wire::new(Script::default()));

    let failed = service.oneshot(Req::tracked()).await;

    assert!(failed.is_err());
    assert_eq!(*seen.lock().unwrap(), [Some(Phase::Total)]);
}

/// A clock of the standard library stands still in a test that pauses tokio's.
#[tokio::test(start_paused = true)]
async fn trap_p8_every_clock_is_the_paused_one() {
    let service = service_fn(|_: Ping| pending::<Result<(), Failure>>());
    let timed = timeout(service, Settings::new());
    let ended = DeadlineLayer::default().layer(service);
    advance(ms(3_600_000)).await;
    let start = Instant::now();

    assert!(timed.oneshot(Ping("x")).await.is_err());
    assert_eq!(start.elapsed(), ms(60_000));

    assert!(ended.oneshot(Ping("x")).await.is_err());
    assert_eq!(start.elapsed(), ms(360_000));
}

/// An error of readiness goes past every layer that only looks at responses.
#[tokio::test(start_paused = true)]
async fn trap_p10_a_readiness_error_is_never_an_error_of_poll_ready() {
    let (inner, mut handle) = mock::pair::<Ping, ()>();
    let mut service = mock::Spawn::new(timeout(inner, Settings::new()));
    handle.send_error("broken");

    assert_ready_ok!(service.poll_ready());
    let failed = service.call(Ping("x")).await;

    assert_eq!(failed.unwrap_err().to_string(), "broken");
}

/// A panic on a task of its own is taken for a timeout.
#[tokio::test(start_paused = true)]
async fn trap_p11_a_panic_is_a_panic() {
    let service = service_fn(|_: Ping| async { panic!("bug") as Result<(), Failure> });
    let start = Instant::now();

    let timed = timeout(service, Settings::new()).oneshot(Ping("x"));
    let panicked = AssertUnwindSafe(timed).catch_unwind().await.unwrap_err();

    assert_eq!(panicked.downcast_ref(), Some(&"bug"));
    assert_eq!(start.elapsed(), ms(0));
}

/// A clock that starts at the first poll gives a call that was polled late more time.
#[tokio::test(start_paused = true)]
async fn trap_p12_the_clock_starts_with_the_call_and_not_with_the_first_poll() {
    let takes_80 = service_fn(|_: Ping| async {
        sleep(ms(80)).await;
        Ok::<_, Failure>(())
    });
    let settings = Settings::new().with_connect(ms(100)).with_read(ms(100));
    let late = timeout(takes_80, settings).call(Ping("x"));
    let on_time = timeout(takes_80, settings).call(Ping("x"));
    advance(ms(10)).await;
    assert!(on_time.await.is_ok());
    advance(ms(410)).await;

    let failure = late.await.unwrap_err();

    assert_eq!(failure.phase(), Some(Phase::Read));
    assert_eq!(failure.elapsed(), Some(ms(500)));
}

/// What a late poll began is taken back where the wire had not sent it.
#[tokio::test(start_paused = true)]
async fn trap_p12_a_call_that_is_polled_after_its_limit_is_not_sent() {
    let wire = Wire::new(Script {
        sent: Some(0),
        ..Script::default()
    });
    let late = timeout(wire.clone(), Settings::new()).call(Req::tracked());
    advance(ms(5_000)).await;

    let failure = late.await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    sleep(ms(1)).await;
    assert_eq!(wire.logged(), [(5_000, "cancelled"), (5_000, "refused")]);
}

/// An error that names neither the limit nor whom it was for.
#[tokio::test(start_paused = true)]
async fn trap_p15_the_failure_says_what_ran_out_for_whom_and_when() {
    let service = timeout(Wire::new(Script::default()), Settings::new());

    let failure = service.oneshot(Req::tracked()).await.unwrap_err();

    assert_eq!(
        failure.to_string(),
        "\"read\" on \"files\": not sent (connect) after 5.0s: its connect limit of 5s passed"
    );
}

/// A waiter that looks every millisecond.
#[tokio::test(start_paused = true)]
async fn trap_p18_a_service_that_is_not_ready_is_not_polled_on_a_timer() {
    #[derive(Clone)]
    struct NeverReady(Arc<AtomicU32>);
    impl Service<Ping> for NeverReady {
        type Response = ();
        type Error = Failure;
        type Future = std::future::Pending<Result<(), Failure>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        }

        fn call(&mut self, _: Ping) -> Self::Future {
            panic!("not ready")
        }
    }
    let polls = Arc::new(AtomicU32::new(0));

    let failed = timeout(NeverReady(Arc::clone(&polls)), Settings::new()).oneshot(Ping("x"));

    assert_eq!(soon(failed).await.unwrap_err().elapsed(), Some(ms(5_000)));
    assert_eq!(polls.load(Ordering::Relaxed), 2);
}

/// A timeout that covers the response only.
#[tokio::test(start_paused = true)]
async fn trap_t4_waiting_for_readiness_is_timed() {
    let start = Instant::now();
    let (inner, mut handle) = mock::pair::<Ping, ()>();
    handle.allow(0);
    let inner = inner.map_err(|error: BoxError| Failure::new(Class::Unknown).with_source(error));

    let timed = timeout(inner.clone(), Settings::new()).oneshot(Ping("x"));
    let failure = soon(timed).await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(millis(start.elapsed()), 5_000);

    let ended = DeadlineLayer::default().layer(inner).oneshot(Ping("x"));
    let failure = soon(ended).await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(millis(start.elapsed()), 305_000);
}

/// A timeout that erases the type of the errors underneath.
#[tokio::test(start_paused = true)]
async fn trap_t6_the_error_type_stays_what_it_was() {
    #[derive(Debug, thiserror::Error)]
    enum Mine {
        #[error(transparent)]
        Tool(#[from] Failure),
        #[error("mine")]
        Own,
    }
    let own = service_fn(|_: Ping| async { Err::<(), _>(Mine::Own) });
    let hangs = service_fn(|_: Ping| pending::<Result<(), Mine>>());

    let own: Mine = timeout(own, Settings::new())
        .oneshot(Ping("x"))
        .await
        .unwrap_err();
    let late: Mine = timeout(hangs, Settings::new())
        .oneshot(Ping("x"))
        .await
        .unwrap_err();

    assert!(matches!(own, Mine::Own));
    assert!(matches!(late, Mine::Tool(failure) if failure.failure().is_some()));
}
