//! Rates of failures and of slow calls, over a window of ten buckets.

mod support;

use steadfast_circuit_breaker::{Counts, OpenCause, Settings, State};
use steadfast_classify::Class;
use support::{Circuit, failure, millis, secs};
use tokio::time::{Duration, advance};

/// Half of at least four calls in the last ten seconds, and nothing else, opens it.
fn half_of_four() -> Settings {
    Settings::new()
        .with_consecutive_failures(None)
        .with_failure_rate(0.5)
        .with_window(secs(10), 4)
}

/// The same for calls that take a second.
fn half_slow() -> Settings {
    Settings::new()
        .with_slow_call_rate(0.5, secs(1))
        .with_window(secs(10), 4)
}

async fn takes(circuit: &mut Circuit, time: Duration) {
    let call = circuit.passes();
    advance(time).await;
    call.answers().await;
}

fn counts(circuit: &Circuit) -> Counts {
    circuit.breaker().snapshot().window.expect("it has rates")
}

fn cause(circuit: &Circuit) -> Option<OpenCause> {
    circuit.breaker().snapshot().cause
}

#[tokio::test(start_paused = true)]
async fn opens_at_the_rate_and_not_below() {
    for (successes, failures, want) in [
        (2, 2, State::Open),
        (3, 2, State::Closed),
        (3, 3, State::Open),
        (11, 10, State::Closed),
        (10, 10, State::Open),
    ] {
        let mut circuit = Circuit::new(half_of_four());

        circuit.succeed(successes).await;
        circuit.fail(failures, Class::Unknown).await;

        let state = circuit.breaker().state();
        assert_eq!(state, want, "{successes} good, {failures} bad");
    }
}

#[tokio::test(start_paused = true)]
async fn says_that_it_was_the_rate() {
    let mut circuit = Circuit::new(half_of_four());
    circuit.succeed(2).await;
    circuit.fail(1, Class::Unknown).await;

    let opening = circuit.passes().fails(failure(Class::Timeout)).await;

    assert!(opening.is_circuit_open());
    assert_eq!(cause(&circuit), Some(OpenCause::FailureRate));
}

#[tokio::test(start_paused = true)]
async fn means_nothing_for_fewer_calls_than_the_minimum() {
    let mut circuit = Circuit::new(half_of_four());

    circuit.fail(3, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Closed);

    circuit.fail(1, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_success_does_not_open_it() {
    let mut circuit = Circuit::new(half_of_four());
    circuit.fail(3, Class::Unknown).await;

    // Three of four have failed now, but the last one shows that the server is alive.
    circuit.succeed(1).await;

    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn comes_in_addition_to_failures_in_a_row() {
    let mut circuit = Circuit::new(half_of_four().with_consecutive_failures(2));
    circuit.succeed(20).await;

    circuit.fail(2, Class::Unknown).await;

    assert_eq!(circuit.breaker().state(), State::Open);
    assert_eq!(cause(&circuit), Some(OpenCause::ConsecutiveFailures));
}

#[tokio::test(start_paused = true)]
async fn refusals_and_cancelled_calls_are_not_in_the_window() {
    let mut circuit = Circuit::new(half_of_four());

    circuit.fail(3, Class::Overloaded).await;
    circuit.fail(3, Class::Cancelled).await;
    circuit.fail(3, Class::Rejected).await;
    drop(circuit.passes());
    circuit.fail(2, Class::Answered).await;

    assert_eq!(counts(&circuit).calls, 2);
    assert_eq!(counts(&circuit).failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_is_forgotten_whole_when_its_time_is_over() {
    let mut circuit = Circuit::new(half_of_four());
    // Buckets of one second; this is in the first one.
    advance(millis(999)).await;
    circuit.fail(3, Class::Unknown).await;

    advance(secs(9)).await;
    assert_eq!(counts(&circuit).failures, 3);

    advance(millis(1)).await;
    assert_eq!(counts(&circuit).failures, 0);
    circuit.fail(1, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn each_bucket_is_forgotten_in_its_turn() {
    let mut circuit = Circuit::new(half_of_four());
    for _ in 0..25 {
        circuit.succeed(1).await;
        advance(secs(1)).await;
    }
    // The bucket that has just begun is empty, nine are full.
    assert_eq!(counts(&circuit).calls, 9);

    advance(secs(4)).await;
    assert_eq!(counts(&circuit).calls, 5);

    advance(secs(100_000)).await;
    assert_eq!(counts(&circuit), Counts::default());
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_closes_begins_a_new_window() {
    let mut circuit = Circuit::new(half_of_four().with_window(secs(3600), 4));
    circuit.fail(4, Class::Unknown).await;
    advance(secs(30)).await;
    circuit.succeed(1).await;
    assert_eq!(counts(&circuit), Counts::default());

    circuit.fail(3, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
    assert_eq!(counts(&circuit).calls, 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_from_before_the_circuit_opened_is_not_in_the_new_window() {
    let mut circuit = Circuit::new(half_of_four());
    let old = circuit.passes();
    circuit.fail(4, Class::Unknown).await;
    advance(secs(30)).await;
    circuit.succeed(2).await;

    old.fails(failure(Class::Unknown)).await;

    assert_eq!((counts(&circuit).calls, counts(&circuit).failures), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn slow_calls_open_it_at_their_rate() {
    let mut circuit = Circuit::new(half_slow());
    takes(&mut circuit, millis(0)).await;
    takes(&mut circuit, millis(999)).await;
    takes(&mut circuit, millis(1000)).await;
    assert_eq!(counts(&circuit).slow, 1);
    assert_eq!(circuit.breaker().state(), State::Closed);

    takes(&mut circuit, millis(1000)).await;

    assert_eq!(circuit.breaker().state(), State::Open);
    assert_eq!(cause(&circuit), Some(OpenCause::SlowCallRate));
}

#[tokio::test(start_paused = true)]
async fn a_fast_call_does_not_open_it_however_many_were_slow() {
    let mut circuit = Circuit::new(half_slow());
    for _ in 0..3 {
        takes(&mut circuit, secs(1)).await;
    }

    takes(&mut circuit, millis(1)).await;

    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn time_runs_from_the_call_and_not_from_its_first_poll() {
    let mut circuit = Circuit::new(half_slow().with_window(secs(10), 1));
    circuit.handle.allow(1);
    let mut service = tower_test::mock::Spawn::new(circuit.service.clone());
    tokio_test::assert_ready_ok!(service.poll_ready());

    let response = service.call("ping");
    advance(secs(1)).await;
    let (_, server) = circuit.handle.next_request().await.unwrap();
    server.send_response("pong");
    response.await.unwrap();

    assert_eq!(circuit.breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_slow_probe_fails() {
    let mut circuit = Circuit::new(half_slow());
    for _ in 0..4 {
        takes(&mut circuit, secs(1)).await;
    }
    advance(secs(30)).await;

    takes(&mut circuit, secs(1)).await;
    assert_eq!(circuit.breaker().state(), State::Open);
    assert_eq!(cause(&circuit), Some(OpenCause::ProbeFailed));

    advance(secs(30)).await;
    takes(&mut circuit, millis(999)).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_that_fails_counts_as_both() {
    let settings = half_slow().with_failure_rate(1.0);
    let mut circuit = Circuit::new(settings);

    let call = circuit.passes();
    advance(secs(2)).await;
    call.fails(failure(Class::Unknown)).await;

    let counts = counts(&circuit);
    assert_eq!((counts.calls, counts.failures, counts.slow), (1, 1, 1));
}
