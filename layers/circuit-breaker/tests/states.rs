//! The states of a circuit, and the edges of its limits.

mod support;

use std::time::Duration;

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
async fn the_open_time_ends_to_the_millisecond() {
    let mut circuit = Circuit::opened(Settings::new()).await;

    advance(secs(30) - Duration::from_nanos(1)).await;
    assert_eq!(circuit.rejected().retry_in(), Some(Duration::from_nanos(1)));

    advance(Duration::from_nanos(1)).await;
    circuit.passes();
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_retry_in_is_the_probe() {
    let mut circuit = Circuit::new(Settings::new());
    // Not at a whole millisecond of the breaker's time.
    advance(Duration::from_micros(1_234_567)).await;
    circuit.fail(5, Class::Unknown).await;
    advance(Duration::from_micros(7_654_321)).await;

    let retry_in = circuit.rejected().retry_in().unwrap();
    advance(retry_in).await;

    circuit.passes();
}

#[tokio::test(start_paused = true)]
async fn one_failure_less_than_the_threshold_opens_nothing() {
    for threshold in [1, 2, 7, 1023] {
        let settings = Settings::new().with_consecutive_failures(threshold);
        let mut circuit = Circuit::new(settings);

        circuit.fail(threshold as usize - 1, Class::Unknown).await;
        assert_eq!(circuit.breaker().state(), State::Closed, "{threshold}");

        circuit.fail(1, Class::Unknown).await;
        assert_eq!(circuit.breaker().state(), State::Open, "{threshold}");
    }
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
async fn a_lease_ends_after_90_s() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let _hung = circuit.passes();

    advance(secs(90) - millis(1)).await;
    let left = circuit.rejected().retry_in().unwrap();
    // Leases are kept in steps of 64 ms, and never end early.
    assert!(millis(1) <= left && left <= millis(65), "{left:?}");

    advance(left).await;
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
async fn trips_are_forgotten_after_a_healthy_period_and_not_before() {
    for (healthy, want) in [(secs(59), 3), (secs(63), 1)] {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;
        circuit.fail(1, Class::Unknown).await;
        advance(secs(30)).await;
        circuit.succeed(1).await;
        assert_eq!(circuit.breaker().snapshot().trips, 2);

        advance(healthy).await;
        circuit.succeed(3).await;
        circuit.fail(5, Class::Unknown).await;

        assert_eq!(circuit.breaker().snapshot().trips, want, "{healthy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_healthy_period_trips_are_forgotten_when_it_closes() {
    let mut circuit = Circuit::opened(Settings::new().with_healthy_after(secs(0))).await;
    advance(secs(30)).await;
    circuit.succeed(1).await;

    circuit.fail(5, Class::Unknown).await;

    assert_eq!(circuit.breaker().snapshot().trips, 1);
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
async fn no_open_time_is_longer_than_a_day() {
    for open_for in [
        OpenFor::with(|_, _, _| Duration::MAX),
        OpenFor::fixed(secs(86_400)),
    ] {
        let mut circuit = Circuit::opened(Settings::new().with_open_for(open_for)).await;

        advance(secs(86_400) - millis(1)).await;
        circuit.rejected();

        advance(millis(1)).await;
        circuit.passes();
    }
}

#[tokio::test(start_paused = true)]
async fn a_circuit_works_after_its_clock_has_started_again() {
    // The word's times start again every 2^36 ms.
    let round = Duration::from_millis(1 << 36);
    for offset in [-40_000_i64, -30_000, -29_999, -90_000, -1, 0, 1] {
        let mut circuit = Circuit::new(Settings::new());
        let start = round.as_millis() as i64 + offset;
        advance(Duration::from_millis(start.unsigned_abs())).await;

        circuit.fail(5, Class::Unknown).await;
        advance(secs(30) - millis(1)).await;
        circuit.rejected();
        advance(millis(1)).await;
        let _hung = circuit.passes();
        advance(secs(90) - millis(1)).await;
        circuit.rejected();
        advance(millis(129)).await;
        circuit.passes().answers().await;

        assert_eq!(circuit.breaker().state(), State::Closed, "{offset}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_that_nobody_calls_for_a_year_lets_the_next_call_probe() {
    let mut circuit = Circuit::opened(Settings::new()).await;

    advance(secs(400 * 86_400)).await;

    circuit.passes().answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
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

#[tokio::test(start_paused = true)]
async fn trips_are_counted_up_to_63() {
    let mut circuit = Circuit::opened(Settings::new()).await;

    for trips in 2..70 {
        advance(secs(30)).await;
        circuit.fail(1, Class::Unknown).await;
        let snapshot = circuit.breaker().snapshot();
        assert_eq!(
            (snapshot.state, snapshot.trips),
            (State::Open, trips.min(63))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_circuit_works_after_its_generations_have_started_again() {
    let mut circuit = Circuit::opened(Settings::new().with_failure_rate(1.0)).await;
    advance(secs(30)).await;
    let stale = circuit.passes();

    // The word's generations start again every 2^20 changes. This is one more.
    for _ in 0..=1 << 20 {
        circuit.breaker().reset();
    }
    stale.fails(failure(Class::Unknown)).await;
    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);

    circuit.fail(5, Class::Unknown).await;
    let snapshot = circuit.breaker().snapshot();
    assert_eq!((snapshot.state, snapshot.trips), (State::Open, 1));
}
