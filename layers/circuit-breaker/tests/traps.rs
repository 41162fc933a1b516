//! What goes wrong in other circuit breakers, each by the number of its entry in our list.

mod support;

use std::time::Duration;

use steadfast_circuit_breaker::{
    CircuitBreakerLayer, CircuitOpen, OpenCause, OpenFor, Settings, State,
};
use steadfast_classify::{Class, Failure};
use support::{Circuit, failure, millis, secs, unbox};
use tokio::time::{advance, timeout};
use tokio_test::{assert_ready_err, assert_ready_ok, task};
use tower::{Layer, ServiceExt, service_fn};
use tower_test::mock::Spawn;

fn rate(window: Duration, minimum: u32) -> Settings {
    Settings::new()
        .with_consecutive_failures(None)
        .with_failure_rate(0.5)
        .with_window(window, minimum)
}

/// A window that never forgets needs as many failures as there were successes.
#[tokio::test(start_paused = true)]
async fn trap_p1_old_successes_do_not_outweigh_new_failures() {
    let mut circuit = Circuit::new(rate(secs(10), 50));
    circuit.succeed(10_000).await;
    advance(secs(10)).await;

    circuit.fail(50, Class::Unknown).await;

    assert_eq!(circuit.breaker().state(), State::Open);
}

/// Probes that are further apart than the window are forgotten before they are enough.
#[tokio::test(start_paused = true)]
async fn trap_p2_probes_further_apart_than_the_window_close_the_circuit() {
    let mut circuit = Circuit::new(rate(secs(1), 2).with_probes(3));
    circuit.fail(2, Class::Unknown).await;

    for _ in 0..3 {
        advance(secs(60)).await;
        circuit.succeed(1).await;
    }

    assert_eq!(circuit.breaker().state(), State::Closed);
}

/// A hung probe keeps the circuit half open for ever.
#[tokio::test(start_paused = true)]
async fn trap_p3_a_hung_probe_does_not_wedge_the_circuit() {
    hung_probes_do_not_wedge().await;
}

/// The same, seen in two more libraries: no wait is bounded by default.
#[tokio::test(start_paused = true)]
async fn trap_j3_a_hung_probe_does_not_wedge_the_circuit() {
    hung_probes_do_not_wedge().await;
}

async fn hung_probes_do_not_wedge() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;

    let mut hung = Vec::new();
    for _ in 0..50 {
        hung.push(circuit.passes());
        advance(secs(89)).await;
        circuit.rejected();
        advance(secs(2)).await;
    }

    circuit.succeed(1).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

/// A success from before the trip closes the circuit while its probe is undecided.
#[tokio::test(start_paused = true)]
async fn trap_p4_a_success_from_before_the_trip_does_not_close_the_circuit() {
    stale_results_change_nothing().await;
}

/// The same, seen in a third library.
#[tokio::test(start_paused = true)]
async fn trap_j2_a_success_from_before_the_trip_does_not_close_the_circuit() {
    stale_results_change_nothing().await;
}

async fn stale_results_change_nothing() {
    let mut circuit = Circuit::new(Settings::new());
    let [good, bad] = [circuit.passes(), circuit.passes()];
    circuit.fail(5, Class::Unknown).await;
    advance(secs(30)).await;
    let probe = circuit.passes();

    good.answers().await;
    assert_eq!(circuit.breaker().state(), State::HalfOpen);
    bad.fails(failure(Class::Unknown)).await;
    assert_eq!(circuit.breaker().state(), State::HalfOpen);

    probe.answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

/// A timeout above the breaker drops the call, and nothing is recorded.
///
/// A dropped call says nothing about the server, on purpose: that is why the timeout stands
/// under the breaker. There, calls that hang open it.
#[tokio::test(start_paused = true)]
async fn trap_p5_calls_that_a_timeout_underneath_ends_are_counted() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let service = layer.layer(service_fn(|(): ()| async {
        let hangs = std::future::pending::<Result<(), Failure>>();
        let ended = timeout(secs(1), hangs).await;
        ended.map_err(|_| failure(Class::Timeout))?
    }));

    for _ in 0..5 {
        assert_eq!(layer.breaker().state(), State::Closed);
        service.clone().oneshot(()).await.unwrap_err();
    }

    assert_eq!(layer.breaker().state(), State::Open);
}

/// An open circuit is tried again and again by whoever repeats calls.
#[tokio::test(start_paused = true)]
async fn trap_p6_whoever_repeats_calls_is_told_that_the_circuit_is_open() {
    use steadfast_classify::Effect;
    let mut circuit = Circuit::new(Settings::new());
    circuit.fail(4, Class::NotSent).await;

    let opening = circuit.passes().fails(failure(Class::NotSent)).await;
    let rejection = circuit.rejected();

    assert!(!opening.may_repeat(Effect::ReadOnly));
    assert!(!rejection.may_repeat(Effect::ReadOnly));
}

/// A clock that a test cannot pause, and the circuit never recovers in it.
#[tokio::test(start_paused = true)]
async fn trap_p8_the_paused_clock_is_obeyed() {
    let real = std::time::Duration::from_secs(3600);
    let mut circuit = Circuit::opened(Settings::new().with_open_for(OpenFor::fixed(real))).await;

    advance(real).await;

    circuit.passes();
}

/// An error of `poll_ready` goes past the breaker, uncounted.
#[tokio::test(start_paused = true)]
async fn trap_p10_errors_of_readiness_open_the_circuit() {
    let mut circuit = Circuit::new(Settings::new());

    for _ in 0..5 {
        let mut service = Spawn::new(circuit.service.clone());
        circuit.handle.send_error(failure(Class::NotSent));
        assert_ready_ok!(service.poll_ready());
        let error = assert_ready_err!(task::spawn(service.call("ping")).poll());
        assert_eq!(unbox(error).class(), Class::NotSent);
    }

    assert_eq!(circuit.breaker().state(), State::Open);
}

/// A rejection that says neither which circuit nor until when.
#[tokio::test(start_paused = true)]
async fn trap_p15_a_rejection_has_a_name_a_cause_and_a_time() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(1)).await;

    let failure = circuit.rejected();

    assert_eq!(failure.retry_in(), Some(secs(29)));
    assert_eq!(failure.origin().layer, Some("circuit breaker"));
    let open: &CircuitOpen = failure.find_source().unwrap();
    assert_eq!((open.name(), open.retry_in()), ("server", Some(secs(29))));
    assert_eq!(open.cause(), OpenCause::ConsecutiveFailures);
    assert_eq!(open.class(), Some(Class::Unknown));
}

/// Each use of a layer makes a new circuit, as a route of a web server does each time.
#[tokio::test(start_paused = true)]
async fn trap_p16_every_service_of_a_layer_goes_by_the_same_circuit() {
    let single = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let keyed = CircuitBreakerLayer::keyed("server", Settings::new(), |(): &()| 1_u8).unwrap();
    let fails = service_fn(|(): ()| async { Err::<(), _>(failure(Class::Unknown)) });

    let (mut by_single, mut by_keyed) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let error = single.clone().layer(fails).oneshot(()).await.unwrap_err();
        by_single.push(error.class());
        let error = keyed.clone().layer(fails).oneshot(()).await.unwrap_err();
        by_keyed.push(error.class());
    }

    let want = [[Class::Unknown; 5], [Class::Rejected; 5]].concat();
    assert_eq!(by_single, want);
    assert_eq!(by_keyed, want);
}

/// Calls wait on a short timer, over and over, until there is room for a probe.
#[tokio::test(start_paused = true)]
async fn trap_p18_a_call_beside_the_probe_is_turned_away_in_one_poll() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let _probe = circuit.passes();
    let mut service = Spawn::new(circuit.service.clone());
    circuit.handle.allow(1);

    assert_ready_ok!(service.poll_ready());
    let mut response = task::spawn(service.call("ping"));

    assert_ready_err!(response.poll());
}

/// Half open lets everything through, and any success closes it.
#[tokio::test(start_paused = true)]
async fn trap_f1_one_of_a_thousand_concurrent_calls_is_the_probe() {
    assert_eq!(probes_of_a_thousand(Settings::new()).await, 1);
}

/// A success from before the trip, in a circuit that looks only at its state.
#[tokio::test(start_paused = true)]
async fn trap_f2_a_success_from_before_the_trip_does_not_close_the_circuit() {
    stale_results_change_nothing().await;
}

/// Half open has no bound, and a window of three needs four results.
#[tokio::test(start_paused = true)]
async fn trap_r1_probes_are_bounded_and_the_third_of_three_failures_opens() {
    assert_eq!(
        probes_of_a_thousand(Settings::new().with_probes(3)).await,
        1
    );

    let mut circuit = Circuit::new(Settings::new().with_consecutive_failures(3));
    circuit.fail(3, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Open);
    let mut circuit = Circuit::new(rate(secs(10), 3));
    circuit.fail(3, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Open);
}

async fn probes_of_a_thousand(settings: Settings) -> usize {
    let mut circuit = Circuit::opened(settings).await;
    advance(secs(30)).await;
    let mut running = Vec::new();
    for _ in 0..1000 {
        running.extend(circuit.begin().ok());
        tokio::task::yield_now().await;
    }
    running.len()
}

/// The probe's permit is forgotten when it is called: cancelled, it is never given back.
#[tokio::test(start_paused = true)]
async fn trap_l1_a_cancelled_probe_gives_its_place_back() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;

    for _ in 0..50 {
        drop(circuit.passes());
    }

    circuit.succeed(1).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

/// A cancelled probe counts as one that succeeded, as does whatever is not "handled".
#[tokio::test(start_paused = true)]
async fn trap_polly_a_cancelled_probe_does_not_close_the_circuit() {
    for ended in [Class::Cancelled, Class::Rejected] {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;

        circuit.passes().fails(failure(ended)).await;

        assert_eq!(circuit.breaker().state(), State::HalfOpen, "{ended}");
    }
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    drop(circuit.passes());
    assert_eq!(circuit.breaker().state(), State::HalfOpen);
}

/// A break-duration function that blocks, or comes back in, under the lock stops everybody.
#[tokio::test(start_paused = true)]
async fn trap_polly_the_open_time_is_computed_under_no_lock() {
    use std::sync::{Arc, OnceLock};
    let layer = Arc::new(OnceLock::<CircuitBreakerLayer>::new());
    let seen = Arc::clone(&layer);
    let open_for = OpenFor::with(move |_, _, _| {
        let breaker = seen.get().unwrap().breaker();
        assert_eq!(breaker.snapshot().state, State::Closed);
        assert_eq!(breaker.watch().current().to, State::Closed);
        millis(1)
    });
    let settings = Settings::new().with_open_for(open_for);
    let mut circuit = Circuit::new(settings);
    layer.set(circuit.layer.clone()).unwrap();

    circuit.fail(5, Class::Unknown).await;

    assert_eq!(circuit.breaker().state(), State::Open);
}

/// A function of the user's that panics leaves the circuit unusable, or the probe out.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_users_open_time_leaves_the_circuit_as_it_was() {
    let open_for = OpenFor::with(|trips, _, _| {
        assert!(trips < 2, "second trip");
        secs(30)
    });
    let mut circuit = Circuit::opened(Settings::new().with_open_for(open_for)).await;
    advance(secs(30)).await;

    let probe = tokio::spawn(circuit.passes().fails(failure(Class::Unknown)));
    assert!(probe.await.unwrap_err().is_panic());

    assert_eq!(circuit.breaker().state(), State::HalfOpen);
    circuit.succeed(1).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}
