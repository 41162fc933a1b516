//! What is refused when a breaker is built.

use std::time::Duration;

use steadfast_circuit_breaker::{Breaker, CircuitBreakerLayer, InvalidSettings, OpenFor, Settings};
use steadfast_classify::Class;

const DAY: Duration = Duration::from_secs(86_400);
const OVER_A_DAY: Duration = Duration::from_secs(86_401);

fn set() -> Settings {
    Settings::new()
}

#[test]
fn what_makes_no_sense_is_refused_by_name_and_with_what_is_allowed() {
    let second = Duration::from_secs(1);
    for (settings, message) in [
        (
            set().with_consecutive_failures(None),
            "one of consecutive_failures, failure_rate and slow_call_rate must be set",
        ),
        (
            set().with_consecutive_failures(0),
            "consecutive_failures must be 1 to 1023, not 0",
        ),
        (
            set().with_consecutive_failures(1024),
            "consecutive_failures must be 1 to 1023, not 1024",
        ),
        (
            set().with_failure_rate(0.0),
            "failure_rate must be above 0 and at most 1, not 0",
        ),
        (
            set().with_failure_rate(f64::NAN),
            "failure_rate must be above 0 and at most 1, not NaN",
        ),
        (
            set().with_slow_call_rate(1.5, second),
            "slow_call_rate must be above 0 and at most 1, not 1.5",
        ),
        (
            set().with_window(Duration::from_millis(9), 1),
            "window must be 10ms to 24h, not 9ms",
        ),
        (
            set().with_window(OVER_A_DAY, 1),
            "window must be 10ms to 24h, not 86401s",
        ),
        (
            set().with_window(second, 0),
            "minimum_calls must be at least 1",
        ),
        (set().with_probes(0), "probes must be 1 to 63, not 0"),
        (set().with_probes(64), "probes must be 1 to 63, not 64"),
        (
            set().with_probe_lease(Duration::ZERO),
            "probe_lease must be above zero and at most 24h, not 0ns",
        ),
        (
            set().with_probe_lease(OVER_A_DAY),
            "probe_lease must be above zero and at most 24h, not 86401s",
        ),
        (
            set().with_healthy_after(OVER_A_DAY),
            "healthy_after must be at most 24h, not 86401s",
        ),
        (set().with_max_keys(0), "max_keys must be at least 1"),
        (
            set().with_open_for(OpenFor::fixed(Duration::ZERO)),
            "open_for must be above zero, not decreasing and at most 24h, not 0ns to 0ns",
        ),
        (
            set().with_open_for(OpenFor::exponential_between(second * 2, second)),
            "open_for must be above zero, not decreasing and at most 24h, not 2s to 1s",
        ),
        (
            set().with_open_for(OpenFor::exponential_between(second, OVER_A_DAY)),
            "open_for must be above zero, not decreasing and at most 24h, not 1s to 86401s",
        ),
    ] {
        let error = Breaker::new("server", settings.clone()).unwrap_err();
        assert_eq!(error.to_string(), message);
        let keyed = CircuitBreakerLayer::keyed("server", settings, |n: &u32| *n);
        assert_eq!(keyed.unwrap_err().to_string(), message);
    }
}

#[test]
fn the_edges_of_what_is_allowed_are_allowed() {
    for settings in [
        set(),
        set().with_consecutive_failures(1),
        set().with_consecutive_failures(1023),
        set().with_failure_rate(1.0).with_consecutive_failures(None),
        set().with_failure_rate(f64::MIN_POSITIVE),
        set().with_window(Duration::from_millis(10), 1),
        set().with_window(DAY, u32::MAX),
        set().with_probes(63),
        set().with_probe_lease(Duration::from_nanos(1)),
        set().with_probe_lease(DAY),
        set().with_healthy_after(DAY),
        set().with_open_for(OpenFor::exponential_between(DAY, DAY)),
        set().with_max_keys(1),
    ] {
        assert!(
            Breaker::new("server", settings.clone()).is_ok(),
            "{settings:?}"
        );
    }
}

#[test]
fn the_first_thing_that_makes_no_sense_is_told() {
    let settings = set().with_probes(0).with_consecutive_failures(0);

    let error = Breaker::new("server", settings).unwrap_err();

    assert_eq!(error, InvalidSettings::ConsecutiveFailures(0));
}

#[test]
fn how_long_it_stays_open() {
    let (fixed, exponential) = (OpenFor::default(), OpenFor::exponential());
    let asks_for_ever = OpenFor::with(|_, _, _| Duration::MAX);
    for (open_for, trips, retry_after, want) in [
        (&fixed, 1, None, 30),
        (&fixed, 9, None, 30),
        (&fixed, 1, Some(29), 30),
        (&fixed, 1, Some(31), 31),
        (&exponential, 0, None, 30),
        (&exponential, 1, None, 30),
        (&exponential, 2, None, 60),
        (&exponential, 4, None, 240),
        (&exponential, 5, None, 300),
        (&exponential, 33, None, 300),
        (&exponential, u32::MAX, None, 300),
        (&exponential, 2, Some(59), 60),
        (&exponential, 2, Some(900), 900),
        (&fixed, 1, Some(100_000), 86_400),
        (&exponential, 1, Some(100_000), 86_400),
        (&asks_for_ever, 1, None, 86_400),
    ] {
        let asked = retry_after.map(Duration::from_secs);
        let got = open_for.after(trips, Class::Unknown, asked);
        let which = format!("{open_for:?}, {trips} trips, asked for {retry_after:?}");
        assert_eq!(got, Duration::from_secs(want), "{which}");
    }
}
