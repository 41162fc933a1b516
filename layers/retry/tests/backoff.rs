//! The arithmetic of waits.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{collections::HashSet, time::Duration};

use proptest::prelude::*;
use steadfast_retry::{Backoff, InvalidBackoff, InvalidSettings, Jitter, RetryLayer, Settings};

mod support;
use support::{ms, secs};

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        (0.0..=1.0).prop_map(Jitter::Additive),
        Just(Jitter::Full),
        Just(Jitter::Additive(0.2)),
    ]
}

/// Uniform, with both ends.
fn randoms() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0]
}

prop_compose! {
    fn backoffs()(
        base in 1_u64..100_000_000_000,
        cap in 0_u64..10_000_000_000_000,
        factor in 1.0..50.0,
        jitter in jitters(),
    ) -> (Backoff, Duration, Duration, Jitter) {
        let base = Duration::from_nanos(base);
        let cap = base + Duration::from_nanos(cap);
        let backoff = Backoff::new(base, cap, jitter).unwrap().with_factor(factor).unwrap();
        (backoff, base, cap, jitter)
    }
}

proptest! {
    #[test]
    fn a_wait_is_never_above_the_cap(
        (backoff, _, cap, _) in backoffs(),
        retry: u32,
        random in randoms(),
    ) {
        prop_assert!(backoff.delay(retry, random) <= cap);
    }

    #[test]
    fn an_additive_wait_is_never_below_the_base(
        (backoff, base, cap, jitter) in backoffs(),
        retry: u32,
        random in randoms(),
    ) {
        if let Jitter::Additive(ratio) = jitter {
            // Where the cap leaves no room for base and jitter, the base makes room.
            let least = base.min(cap.div_f64(1.0 + ratio));
            prop_assert!(backoff.delay(retry, random) >= least);
        }
    }

    #[test]
    fn a_wait_at_the_cap_is_still_spread_over_the_whole_jitter(
        (backoff, _, cap, jitter) in backoffs(),
    ) {
        // A factor of nearly 1 needs many retries to reach the cap.
        let at_the_cap = backoff.with_factor(2.0).unwrap();
        let spread = at_the_cap.delay(u32::MAX, 1.0) - at_the_cap.delay(u32::MAX, 0.0);
        let want = match jitter {
            Jitter::Additive(ratio) => cap.mul_f64(ratio / (1.0 + ratio)),
            _ => cap,
        };
        prop_assert!(spread.abs_diff(want) <= Duration::from_nanos(2), "{spread:?} {want:?}");
    }

    #[test]
    fn waits_never_shrink_from_one_retry_to_the_next(
        (backoff, ..) in backoffs(),
        retry in 0_u32..2_000,
        random in randoms(),
    ) {
        prop_assert!(backoff.delay(retry, random) <= backoff.delay(retry + 1, random));
    }

    #[test]
    fn no_input_panics(retry: u32, random: f64, (backoff, ..) in backoffs()) {
        let _ = backoff.delay(retry, random);
    }
}

#[test]
fn the_default_is_half_a_second_doubling_to_eight() {
    let backoff = Backoff::default();
    for (retry, low, high) in [
        (0, 500, 600),
        (1, 1_000, 1_200),
        (2, 2_000, 2_400),
        (3, 4_000, 4_800),
    ] {
        assert_eq!(backoff.delay(retry, 0.0), ms(low), "retry {retry}");
        assert_eq!(backoff.delay(retry, 1.0), ms(high), "retry {retry}");
    }
    for retry in [4, 5, 40, 1_100, u32::MAX] {
        let low = backoff.delay(retry, 0.0);
        assert_eq!(low, secs(8).div_f64(1.2), "retry {retry}");
        assert_eq!(backoff.delay(retry, 1.0), secs(8), "retry {retry}");
    }
}

#[test]
fn full_jitter_is_anything_from_nothing_to_the_whole_wait() {
    let backoff = Backoff::new(ms(500), secs(8), Jitter::Full).unwrap();
    for (retry, random, want) in [
        (0, 0.0, ms(0)),
        (0, 0.5, ms(250)),
        (0, 1.0, ms(500)),
        (2, 0.25, ms(500)),
        (9, 0.5, secs(4)),
        (9, 1.0, secs(8)),
    ] {
        assert_eq!(backoff.delay(retry, random), want, "{retry} {random}");
    }
}

#[test]
fn randomness_out_of_range_is_taken_as_the_nearer_end() {
    let backoff = Backoff::default();
    for (random, want) in [
        (-1.0, 0.0),
        (f64::NAN, 0.0),
        (2.0, 1.0),
        (f64::INFINITY, 1.0),
    ] {
        assert_eq!(backoff.delay(1, random), backoff.delay(1, want), "{random}");
    }
}

#[test]
fn trap_p7_jitter_is_not_added_on_top_of_the_cap() {
    // `min(0.5 · 2⁴, 8) + 0.2 · 8` would be 9.6 s.
    let backoff = Backoff::default();
    for retry in 0..64 {
        for random in [0.0, 0.5, 0.999_999, 1.0] {
            let wait = backoff.delay(retry, random);
            assert!(wait <= secs(8), "{wait:?} before retry {retry}");
        }
    }
    // Both parts of this wait round up: their sum is a nanosecond more than the cap.
    let (base, cap) = (Duration::from_nanos(1), Duration::from_nanos(4_893));
    let backoff = Backoff::new(base, cap, Jitter::Additive(0.2)).unwrap();
    assert_eq!(backoff.delay(u32::MAX, 1.0), cap);
}

#[test]
fn trap_t7_whole_second_waits_are_spread_too() {
    for base in [ms(500), secs(1), secs(2), secs(4)] {
        let backoff = Backoff::new(base, secs(60), Jitter::Additive(0.2)).unwrap();
        let waits: HashSet<_> = (0..1_000)
            .map(|n| backoff.delay(0, f64::from(n) / 1_000.0))
            .collect();
        assert_eq!(waits.len(), 1_000, "base {base:?}");
    }
}

#[test]
fn a_backoff_that_cannot_be_kept_is_refused_by_the_name_of_its_field() {
    let additive = Jitter::Additive;
    let day = secs(24 * 60 * 60);
    for (base, cap, jitter, want) in [
        (ms(0), secs(1), additive(0.2), "base must be above zero"),
        (
            secs(2),
            secs(1),
            additive(0.2),
            "cap must be at least base (2s) and at most 24h, not 1s",
        ),
        (
            ms(1),
            day + ms(1),
            Jitter::Full,
            "cap must be at least base (1ms) and at most 24h, not 86400.001s",
        ),
        (
            ms(1),
            secs(1),
            additive(-0.1),
            "jitter must be from 0 to 1, not -0.1",
        ),
        (
            ms(1),
            secs(1),
            additive(1.5),
            "jitter must be from 0 to 1, not 1.5",
        ),
        (
            ms(1),
            secs(1),
            additive(f64::NAN),
            "jitter must be from 0 to 1, not NaN",
        ),
    ] {
        let error = Backoff::new(base, cap, jitter).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
    for factor in [0.99, -2.0, f64::NAN, f64::INFINITY] {
        let error = Backoff::default().with_factor(factor).unwrap_err();
        assert!(matches!(error, InvalidBackoff::Factor(_)), "{factor}");
    }
}

#[test]
fn the_edges_of_what_is_allowed_are_allowed() {
    let day = secs(24 * 60 * 60);
    for (base, cap, jitter) in [
        (Duration::from_nanos(1), day, Jitter::Additive(1.0)),
        (day, day, Jitter::Full),
        (secs(1), secs(1), Jitter::Additive(0.0)),
    ] {
        let backoff = Backoff::new(base, cap, jitter).unwrap();
        assert_eq!(backoff.cap(), cap);
        assert!(backoff.delay(u32::MAX, 1.0) <= cap);
    }
    let constant = Backoff::new(secs(1), secs(2), Jitter::Additive(0.0))
        .unwrap()
        .with_factor(1.0)
        .unwrap();
    assert_eq!(constant.delay(u32::MAX, 0.5), secs(1));
}

#[test]
fn a_longest_wait_below_the_cap_is_refused() {
    let below = Settings::new().with_max_wait(ms(7_999));
    let error = RetryLayer::new(below).unwrap_err();
    assert_eq!(
        error,
        InvalidSettings::MaxWait {
            cap: secs(8),
            max_wait: ms(7_999)
        }
    );
    assert_eq!(
        error.to_string(),
        "max_wait must be at least the cap of the backoff (8s), not 7.999s"
    );

    assert!(RetryLayer::new(Settings::new().with_max_wait(secs(8))).is_ok());
}
