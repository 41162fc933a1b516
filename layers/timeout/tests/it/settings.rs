//! Defaults, and settings that are refused.

use std::time::Duration;

use steadfast_timeout::{DeadlineLayer, InvalidSettings, Settings, Timeout, TimeoutLayer};

use crate::wire::ms;

#[test]
fn the_defaults_are_the_documented_ones() {
    let layer = TimeoutLayer::default();

    let settings = layer.settings();

    assert_eq!(settings.connect, Duration::from_secs(5));
    assert_eq!(settings.read, Duration::from_secs(60));
    assert_eq!(settings.attempt, None);
    assert!(settings.reset_on_progress);
    assert_eq!(DeadlineLayer::default().total(), Duration::from_secs(300));
    assert!(TimeoutLayer::new(Settings::default()).is_ok());
}

#[test]
fn a_limit_of_zero_is_refused() {
    let settings = Settings::new();
    for (settings, field) in [
        (settings.with_connect(Duration::ZERO), "connect"),
        (settings.with_read(Duration::ZERO), "read"),
        (settings.with_attempt(Duration::ZERO), "attempt"),
    ] {
        let refused = TimeoutLayer::new(settings).unwrap_err();

        assert_eq!(refused, InvalidSettings::Zero { field });
        assert_eq!(
            refused.to_string(),
            format!("`{field}` is zero; allowed is any duration above zero")
        );
        assert_eq!(Timeout::new((), settings).unwrap_err(), refused);
    }
    let refused = DeadlineLayer::new(Duration::ZERO).unwrap_err();
    assert_eq!(refused, InvalidSettings::Zero { field: "total" });
}

#[test]
fn a_limit_that_the_attempt_never_reaches_is_refused() {
    let settings = Settings::new().with_connect(ms(200)).with_read(ms(300));
    for (attempt, want) in [
        (ms(199), Some("connect")),
        (ms(299), Some("read")),
        (ms(300), None),
    ] {
        let built = TimeoutLayer::new(settings.with_attempt(attempt));

        let field = built.err().map(|refused| match refused {
            InvalidSettings::NeverReached { field, .. } => field,
            other => panic!("{other}"),
        });
        assert_eq!(field, want, "attempt {attempt:?}");
    }
}

#[test]
fn a_refusal_says_what_is_allowed() {
    let refused = TimeoutLayer::new(Settings::new().with_attempt(ms(30_000)));

    assert_eq!(
        refused.unwrap_err().to_string(),
        "`read` is 60s, above `attempt` (30s), and could never run out; \
         allowed is at most `attempt`"
    );
}

#[test]
fn a_limit_that_is_off_contradicts_nothing() {
    let settings = Settings::new()
        .with_connect(Duration::MAX)
        .with_read(Duration::MAX)
        .with_attempt(ms(30_000));

    assert!(TimeoutLayer::new(settings).is_ok());
    assert!(DeadlineLayer::new(Duration::MAX).is_ok());
}
