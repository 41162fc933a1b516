//! What the timeout proves, and what it does not claim.

use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use steadfast_classify::{Call, Class, Failure, Flight, Limits, Phase, Stage};
use steadfast_timeout::{Elapsed, Settings};
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Service, ServiceExt, service_fn};

use crate::wire::{Ping, Req, Script, Wire, millis, ms, outcome, timeout};

const SETTINGS: Settings = Settings::new().with_connect(ms(500)).with_read(ms(2_000));

#[tokio::test(start_paused = true)]
async fn a_call_behind_a_stuck_pipe_is_withdrawn_and_never_sent() {
    let wire = Wire::new(Script {
        sent: Some(600),
        ..Script::default()
    });

    let failure = timeout(wire.clone(), SETTINGS)
        .oneshot(Req::tracked())
        .await
        .unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert!(!failure.may_have_run());
    assert_eq!(failure.origin().server.as_deref(), Some("files"));
    assert_eq!(failure.origin().operation.as_deref(), Some("read"));
    sleep(ms(1_000)).await;
    assert_eq!(wire.logged(), [(500, "cancelled"), (600, "refused")]);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_flight_of_its_own() {
    let flights =
        service_fn(
            |mut request: Req| async move { Ok::<_, Failure>(request.0.take_flight().unwrap()) },
        );
    let mut service = timeout(flights, SETTINGS);
    let request = Req::tracked();

    let first = service.call(request.clone()).await.unwrap();
    let second = service.call(request).await.unwrap();

    assert!(first.queued());
    assert_eq!(second.stage().0, Stage::New);
}

/// It belongs to a layer further out, which may watch several attempts.
#[tokio::test(start_paused = true)]
async fn a_flight_that_is_there_already_is_not_taken_over() {
    let foreign = Flight::new();
    let mut request = Req::tracked();
    request.0.set_flight(foreign.clone());
    let script = Script::default();

    let got = outcome(SETTINGS, script, request).await;

    assert_eq!(got, (Err((Class::NotSent, Phase::Connect)), 500));
    assert_eq!(foreign.stage().0, Stage::New);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_tracked_gets_no_flight() {
    let service = service_fn(|request: Req| async move {
        assert!(request.context().unwrap().flight().is_none());
        Ok::<_, Failure>(())
    });

    timeout(service, SETTINGS)
        .oneshot(Req::default())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_starts_a_server_has_its_start_time_to_connect() {
    for (starting, want) in [(3_000, 3_000), (100, 500)] {
        let script = Script {
            starting: Some(starting),
            ..Script::default()
        };

        let got = outcome(SETTINGS, script, Req::tracked()).await;

        let want = (Err((Class::NotSent, Phase::Connect)), want);
        assert_eq!(got, want, "starting {starting}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_is_claimed_late_has_the_connect_limit_from_the_call() {
    // The claim is due inside `call`; a wire that makes it later is still understood.
    let late = service_fn(|request: Req| async move {
        let flight = request.context().unwrap().flight().unwrap();
        sleep(ms(100)).await;
        assert!(flight.queued());
        std::future::pending::<Result<(), Failure>>().await
    });

    let failure = timeout(late, SETTINGS).oneshot(Req::tracked()).await;

    let failure = failure.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.elapsed(), Some(ms(500)));
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_flight_proves_nothing() {
    for settings in [SETTINGS, SETTINGS.with_attempt(ms(2_000))] {
        let script = Script {
            ignores_flights: true,
            ..Script::default()
        };

        let got = outcome(settings, script, Req::tracked()).await;

        assert_eq!(got, (Err((Class::Timeout, Phase::Read)), 2_000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_somebody_else_withdrew_proves_nothing_to_us() {
    let failing = service_fn(|request: Req| async move {
        let flight = request.context().unwrap().flight().unwrap();
        assert!(flight.queued());
        assert!(flight.withdraw());
        std::future::pending::<Result<(), Failure>>().await
    });

    let failure = timeout(failing, SETTINGS).oneshot(Req::tracked()).await;

    let failure = failure.unwrap_err();
    assert_eq!(failure.class(), Class::Timeout);
    assert_eq!(failure.elapsed(), Some(ms(500)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_still_on_its_way_up_has_the_read_limit() {
    let service = service_fn(|request: Req| async move {
        let flight = request.context().unwrap().flight().unwrap();
        assert!(flight.sending());
        sleep(ms(1_000)).await;
        flight.answered();
        sleep(ms(1_900)).await;
        Ok::<_, Failure>("read in full")
    });

    let answer = timeout(service, SETTINGS).oneshot(Req::tracked()).await;

    assert_eq!(answer.unwrap(), "read in full");
}

/// The wire sends in the very moment in which the connect limit runs out.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_sent_at_the_connect_limit_goes_on_to_be_read() {
    let (tell, told) = std::sync::mpsc::channel::<Flight>();
    let service = service_fn(move |request: Req| {
        let flight = request.context().unwrap().flight().unwrap().clone();
        assert!(flight.queued());
        tell.send(flight).unwrap();
        std::future::pending::<Result<(), Failure>>()
    });
    let mut service = timeout(service, SETTINGS);
    let mut call = task::spawn(service.call(Req::tracked()));
    assert_pending!(call.poll());

    tokio::time::advance(ms(500)).await;
    assert!(told.recv().unwrap().sending());
    assert!(call.is_woken());
    assert_pending!(call.poll());

    tokio::time::advance(ms(1_999)).await;
    assert_pending!(call.poll());
    tokio::time::advance(ms(1)).await;
    let failure = assert_ready!(call.poll()).unwrap_err();
    assert_eq!(failure.class(), Class::Timeout);
    assert_eq!(failure.elapsed(), Some(ms(2_500)));
}

#[tokio::test(start_paused = true)]
async fn outside_of_a_layer_that_repeats_it_proves_nothing() {
    // The first attempt fails while it is queued, the second was sent and hangs.
    let mut service = timeout(SendsTheSecond, SETTINGS);
    let start = Instant::now();

    let failure = service.call(Req::tracked()).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout);
    assert_eq!(failure.phase(), Some(Phase::Read));
    assert_eq!(millis(start.elapsed()), 2_000);
}

#[tokio::test(start_paused = true)]
async fn outside_of_a_layer_that_repeats_the_attempt_limit_proves_nothing_either() {
    let mut service = timeout(SendsTheSecond, SETTINGS.with_attempt(ms(2_000)));

    let request = Req::tracked().with_deadline(ms(1_000));
    let failure = service.call(request).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout);
    assert_eq!(failure.phase(), Some(Phase::Total));
}

#[tokio::test(start_paused = true)]
async fn what_fails_inside_passes_untouched() {
    let service = service_fn(|_: Ping| async {
        Err::<(), _>(Failure::new(Class::Unknown).with_attempts_of_two())
    });

    let failure = timeout(service, SETTINGS).oneshot(Ping("x")).await;

    let failure = failure.unwrap_err();
    assert_eq!((failure.class(), failure.attempts()), (Class::Unknown, 2));
    assert_eq!((failure.elapsed(), failure.phase()), (None, None));
    assert_eq!(failure.origin().layer, None);
}

/// A service that repeats: a first attempt that dies in the queue, its flight left as
/// it was, and a second one, a clone, that is sent.
#[derive(Clone)]
struct SendsTheSecond;

impl Service<Req> for SendsTheSecond {
    type Response = ();
    type Error = Failure;
    type Future = BoxFuture<'static, Result<(), Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut first: Req) -> Self::Future {
        let second = first.clone();
        let flight = first.0.take_flight().unwrap();
        assert!(flight.queued());
        async move {
            assert!(second.context().unwrap().flight().is_none());
            std::future::pending().await
        }
        .boxed()
    }
}

trait Twice {
    fn with_attempts_of_two(self) -> Self;
}

impl Twice for Failure {
    fn with_attempts_of_two(mut self) -> Self {
        self.set_attempts(2);
        self
    }
}

/// The server asked for something, and whoever answers takes their time.
#[tokio::test(start_paused = true)]
async fn silence_that_is_not_the_servers_does_not_count() {
    for (held, limits, end) in [
        (10_000, Limits::new(), (Class::Timeout, Phase::Read, 12_000)),
        // Limits on the attempt hold all the same.
        (
            10_000,
            Limits::new().with_attempt(ms(5_000)),
            (Class::Timeout, Phase::Held, 5_000),
        ),
        (0, Limits::new(), (Class::Timeout, Phase::Read, 2_000)),
    ] {
        let service = service_fn(move |mut request: Req| async move {
            let flight = request.0.take_flight().expect("it is tracked");
            assert!(flight.queued() && flight.sending());
            let hold = flight.hold();
            sleep(ms(held)).await;
            drop(hold);
            std::future::pending::<Result<(), Failure>>().await
        });
        let begun = Instant::now();

        let call = timeout(service, SETTINGS).oneshot(Req::tracked().with_limits(limits));
        let failure = call.await.expect_err("nobody answers");

        let (class, phase, after) = end;
        assert_eq!((failure.class(), failure.phase()), (class, Some(phase)));
        assert_eq!(millis(begun.elapsed()), after, "held for {held} ms");
    }
}

/// It waits for a place of ours, and the server has none to give.
#[tokio::test(start_paused = true)]
async fn a_limit_that_passes_while_we_hold_a_call_says_so() {
    for (held, phase) in [(true, Phase::Held), (false, Phase::Connect)] {
        let service = service_fn(move |mut request: Req| async move {
            let flight = request.0.take_flight().expect("it is tracked");
            assert!(flight.queued());
            let _hold = held.then(|| flight.hold());
            std::future::pending::<Result<(), Failure>>().await
        });

        let call = timeout(service, SETTINGS).oneshot(Req::tracked());
        let failure = call.await.expect_err("there is no place");

        assert_eq!(
            (failure.class(), failure.phase()),
            (Class::NotSent, Some(phase))
        );
        let elapsed = failure.find_source::<Elapsed>().expect("a limit passed");
        assert_eq!(elapsed.phase(), Phase::Connect, "whose it was");
    }
}
