//! The states of a circuit, and what leads from one to another.

mod support;

use steadfast_circuit_breaker::{CircuitOpen, OpenCause, OpenFor, Settings, State};
use steadfast_classify::{Class, Failure};
use support::{Circuit, failure, millis, secs};
use tokio::time::{advance, sleep};

#[tokio::test(start_paused = true)]
async fn a_walk_through_all_states() {
    let mut circuit = Circuit::new(Settings::new());

    // Closed: calls pass, and a success ends a run of failures.
    circuit.fail(4, Class::Unknown).await;
    circuit.succeed(1).await;
    circuit.fail(4, Class::Timeout).await;
    assert_eq!(circuit.breaker().state(), State::Closed);

    // The fifth failure in a row opens it, and says so.
    let fifth = circuit.passes().fails(failure(Class::NotSent)).await;
    assert_eq!(circuit.breaker().state(), State::Open);
    assert!(fifth.is_circuit_open());
    assert_eq!(fifth.retry_in(), Some(secs(30)));
    assert_eq!(fifth.class(), Class::NotSent);

    // Open: calls are turned away, with a name and a time.
    advance(secs(10)).await;
    let away = circuit.rejected();
    assert_eq!(away.retry_in(), Some(secs(20)));
    let open: &CircuitOpen = away.find_source().unwrap();
    assert_eq!(open.name(), "server");
    assert_eq!(open.cause(), OpenCause::ConsecutiveFailures);

    // Half open: the first call after the open time is the probe, others are turned away.
    advance(secs(20)).await;
    assert_eq!(circuit.breaker().state(), State::Open);
    let probe = circuit.passes();
    assert_eq!(circuit.breaker().state(), State::HalfOpen);
    circuit.rejected();

    // A failed probe opens it again, for its time.
    assert!(probe.fails(failure(Class::Unknown)).await.is_circuit_open());
    assert_eq!(circuit.breaker().state(), State::Open);
    assert_eq!(circuit.breaker().snapshot().trips, 2);
    circuit.rejected();

    // A successful probe closes it, and calls pass, several at a time.
    advance(secs(30)).await;
    circuit.passes().answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
    let (first, second) = (circuit.passes(), circuit.passes());
    first.answers().await;
    second.answers().await;
}

#[tokio::test(start_paused = true)]
async fn two_probes_pass_one_after_the_other() {
    let mut circuit = Circuit::opened(Settings::new().with_probes(2)).await;
    advance(secs(30)).await;

    let first = circuit.passes();
    circuit.rejected();
    first.answers().await;
    assert_eq!(circuit.breaker().state(), State::HalfOpen);

    let second = circuit.passes();
    circuit.rejected();
    second.answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn one_failure_among_probes_opens_it_again() {
    let mut circuit = Circuit::opened(Settings::new().with_probes(3)).await;
    advance(secs(30)).await;

    circuit.succeed(2).await;
    circuit.fail(1, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Open);

    // The successes before it are forgotten.
    advance(secs(30)).await;
    circuit.succeed(2).await;
    assert_eq!(circuit.breaker().state(), State::HalfOpen);
    circuit.succeed(1).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_gives_its_place_back_at_once() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;

    drop(circuit.passes());

    assert_eq!(circuit.breaker().state(), State::HalfOpen);
    circuit.passes().answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_the_same_generation_counts() {
    for (late, want) in [(None, State::Closed), (Some(Class::Unknown), State::Open)] {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;
        let late_probe = circuit.passes();
        advance(secs(91)).await;
        let next_probe = circuit.passes();

        match late {
            None => late_probe.answers().await,
            Some(class) => drop(late_probe.fails(failure(class)).await),
        }
        assert_eq!(circuit.breaker().state(), want, "{late:?}");

        // The one that took its place comes from before that.
        next_probe.fails(failure(Class::Unknown)).await;
        assert_eq!(circuit.breaker().state(), want, "{late:?}");
        assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_probe_does_not_give_away_the_place_of_the_next() {
    let mut circuit = Circuit::opened(Settings::new().with_probes(2)).await;
    advance(secs(30)).await;
    let (late, later) = (circuit.passes(), {
        advance(secs(91)).await;
        circuit.passes()
    });
    advance(secs(91)).await;
    let _current = circuit.passes();

    drop(late);
    circuit.rejected();
    later.answers().await;
    circuit.rejected();
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_opens_again_soon_stays_open_longer() {
    let settings = Settings::new().with_open_for(OpenFor::exponential());
    let mut circuit = Circuit::opened(settings).await;

    for (trips, open_for) in [(1, 30), (2, 60), (3, 120), (4, 240), (5, 300), (6, 300)] {
        assert_eq!(circuit.breaker().snapshot().trips, trips);
        advance(secs(open_for) - millis(1)).await;
        circuit.rejected();
        advance(millis(1)).await;
        circuit.passes().fails(failure(Class::Unknown)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_open_time_may_depend_on_trips_class_and_retry_after() {
    let open_for = OpenFor::with(|trips, class, retry_after| {
        let base = if class == Class::Timeout { 100 } else { 10 };
        secs(base) * trips + retry_after.unwrap_or_default()
    });
    let mut circuit = Circuit::opened(Settings::new().with_open_for(open_for)).await;
    assert_eq!(circuit.rejected().retry_in(), Some(secs(10)));

    advance(secs(10)).await;
    let timeout = failure(Class::Timeout).with_retry_after(secs(7));
    let failure = circuit.passes().fails(timeout).await;

    assert_eq!(failure.retry_in(), Some(secs(207)));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_ends_while_the_circuit_is_open_is_marked() {
    let mut circuit = Circuit::new(Settings::new());
    let slow = circuit.passes();
    circuit.fail(5, Class::Unknown).await;
    sleep(secs(12)).await;

    let late: Failure = slow.fails(failure(Class::Timeout)).await;

    assert!(late.is_circuit_open());
    assert_eq!(late.retry_in(), Some(secs(18)));
    assert_eq!(circuit.breaker().snapshot().trips, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_which_another_call_could_pass_is_not_marked() {
    let mut circuit = Circuit::new(Settings::new());
    let [closed, overdue, half_open] = [circuit.passes(), circuit.passes(), circuit.passes()];

    assert!(
        !closed
            .fails(failure(Class::Unknown))
            .await
            .is_circuit_open()
    );
    circuit.fail(4, Class::Unknown).await;
    advance(secs(30)).await;
    assert!(
        !overdue
            .fails(failure(Class::Unknown))
            .await
            .is_circuit_open()
    );
    let _probe = circuit.passes();
    assert!(
        !half_open
            .fails(failure(Class::Unknown))
            .await
            .is_circuit_open()
    );
}
