//! The edges of limits: just before, just after, and where numbers start again.

mod support;

use std::time::Duration;

use steadfast_circuit_breaker::{CircuitOpen, OpenFor, Settings, State};
use steadfast_classify::Class;
use support::{Circuit, failure, millis, secs};
use tokio::time::advance;

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
    let retry_in = circuit.rejected().retry_in().unwrap();
    assert!(secs(30) <= retry_in && retry_in < secs(30) + millis(1));
    assert_eq!(circuit.breaker().watch().current().open_for, Some(secs(30)));
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
async fn a_lease_ends_after_90_s() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let _hung = circuit.passes();

    advance(secs(90) - millis(1)).await;
    let away = circuit.rejected();
    assert_eq!(away.retry_in(), None, "the probe may be back at any moment");
    let left = away
        .find_source::<CircuitOpen>()
        .unwrap()
        .retry_in()
        .unwrap();
    // Leases are kept in steps of 64 ms, and never end early.
    assert!(millis(1) <= left && left <= millis(65), "{left:?}");

    advance(left).await;
    circuit.passes().answers().await;
    assert_eq!(circuit.breaker().state(), State::Closed);
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
async fn a_healthy_period_never_ends_early_and_two_and_a_half_seconds_late_at_most() {
    for begin in (0..1024).step_by(31) {
        for (healthy, want) in [(millis(59_999), 2), (millis(62_500), 1)] {
            let mut circuit = Circuit::new(Settings::new());
            advance(millis(begin)).await;
            circuit.fail(5, Class::Unknown).await;
            advance(secs(30)).await;
            circuit.succeed(1).await;

            advance(healthy).await;
            circuit.fail(5, Class::Unknown).await;

            assert_eq!(
                circuit.breaker().snapshot().trips,
                want,
                "{begin}, {healthy:?}"
            );
        }
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
    for offset in [
        -150_000_i64,
        -120_000,
        -90_000,
        -40_000,
        -30_000,
        -29_999,
        -1,
        0,
        1,
    ] {
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

        let closed = circuit.breaker().watch().current();
        assert_eq!(
            (closed.to, closed.generation),
            (State::Closed, 3),
            "{offset}"
        );
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

    // Opened and half open, this is the third generation of 2^20.
    for _ in 2..1 << 20 {
        circuit.breaker().reset();
    }
    assert_eq!(circuit.breaker().watch().current().generation, 0);
    assert_eq!(circuit.breaker().snapshot().trips, 0);

    stale.fails(failure(Class::Unknown)).await;
    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);

    circuit.fail(5, Class::Unknown).await;
    let snapshot = circuit.breaker().snapshot();
    assert_eq!((snapshot.state, snapshot.trips), (State::Open, 1));
}
