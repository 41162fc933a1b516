//! What a stack does not let itself be told.

use std::{error::Error, time::Duration};

use steadfast::{
    Stack, budget::RetryBudgetSettings, circuit_breaker, retry, stack::InvalidStack, timeout,
};

/// Wrong settings, the variant they are refused by, and words of the line that says so: the
/// field, and what is allowed.
type Case = (Stack, fn(&InvalidStack) -> bool, [&'static str; 2]);

#[test]
fn a_stack_refuses_what_makes_no_sense_and_says_what_does() {
    for (stack, variant, words) in cases() {
        let refused = stack.clone().build().map(drop).unwrap_err();

        assert!(variant(&refused), "{refused:?}");
        let line = refused.to_string();
        for word in words {
            assert!(line.contains(word), "{line}");
        }
        assert!(!line.contains('\n'), "{line}");
        assert!(refused.source().is_none(), "all is in the line: {line}");
    }
}

#[test]
fn a_stack_takes_what_is_just_allowed() {
    let total = Duration::from_secs(10);
    let tight = timeout::Settings::new()
        .with_connect(total)
        .with_read(total)
        .with_attempt(total);
    let lease = circuit_breaker::Settings::new().with_probe_lease(2 * total);

    let stack = Stack::new("shop").with_timeout(tight).with_total(total);
    assert!(stack.with_breaker("shop", lease).build().is_ok());

    let endless = timeout::Settings::new()
        .with_connect(Duration::MAX)
        .with_read(Duration::MAX);
    let stack = Stack::new("shop").with_timeout(endless);
    assert!(
        stack.build().is_ok(),
        "a limit that is off contradicts nothing"
    );
}

fn cases() -> Vec<Case> {
    use InvalidStack::{Breaker, NeverReached, Retry, RetryBudget, ShortLease, Timeout};

    let second = Duration::from_secs(1);
    let base = || Stack::new("shop").with_total(10 * second);
    let limits = || timeout::Settings::new().with_read(5 * second);
    let never = |refused: &InvalidStack| matches!(refused, NeverReached { .. });
    let circuit = circuit_breaker::Settings::new;
    vec![
        (
            base().with_timeout(limits().with_connect(11 * second)),
            never,
            ["`connect` (11s)", "total time of a call (10s)"],
        ),
        (
            base().with_timeout(limits().with_read(11 * second)),
            never,
            ["`read` (11s)", "total time of a call (10s)"],
        ),
        (
            base().with_timeout(limits().with_attempt(11 * second)),
            never,
            ["`attempt` (11s)", "total time of a call (10s)"],
        ),
        (
            base()
                .with_timeout(limits())
                .with_breaker("shop", circuit().with_probe_lease(9 * second)),
            |refused| matches!(refused, ShortLease { .. }),
            [
                "`probe_lease` (9s)",
                "at least `connect` and `read` together (10s)",
            ],
        ),
        (
            base().with_timeout(limits().with_connect(Duration::ZERO)),
            |refused| matches!(refused, Timeout(_)),
            ["`connect`", "any duration above zero"],
        ),
        (
            base().with_timeout(limits().with_attempt(second)),
            |refused| matches!(refused, Timeout(_)),
            ["`connect`", "at most `attempt`"],
        ),
        (
            base()
                .with_timeout(limits())
                .with_retry(retry::Settings::new().with_max_wait(second)),
            |refused| matches!(refused, Retry(_)),
            ["max_wait", "at least the cap of the backoff (8s)"],
        ),
        (
            base()
                .with_timeout(limits())
                .with_retry_budget(RetryBudgetSettings::new().with_percent(1001)),
            |refused| matches!(refused, RetryBudget(_)),
            ["percent", "at most 1000"],
        ),
        (
            base()
                .with_timeout(limits())
                .with_breaker("shop", circuit().with_probes(0)),
            |refused| matches!(refused, Breaker(_)),
            ["probes", "1 to 63"],
        ),
    ]
}
