//! How many retries there may be.

use std::time::Duration;

use steadfast_budget::{InvalidRetryBudget, RetryBudget, RetryBudgetSettings};
use tokio::time;
use tower::retry::budget::Budget;

#[tokio::test(start_paused = true)]
async fn a_fifth_of_the_first_attempts_and_ten_in_reserve() {
    let budget = RetryBudget::default();
    assert_eq!(budget.balance(), 10);
    assert_eq!(withdraw_all(&budget), 10);

    for _ in 0..4 {
        budget.deposit();
        assert!(!budget.withdraw(), "not yet a whole one");
    }
    budget.deposit();
    assert!(budget.withdraw());
    assert!(!budget.withdraw());

    for _ in 0..100 {
        budget.deposit();
    }
    assert_eq!(withdraw_all(&budget), 20);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_saved_than_the_ceiling() {
    let budget = RetryBudget::default();

    for _ in 0..1_000_000 {
        budget.deposit();
    }

    assert_eq!(budget.balance(), 100);
    assert_eq!(withdraw_all(&budget), 100);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_comes_back_one_by_one_and_no_further() {
    let budget = RetryBudget::default();
    withdraw_all(&budget);

    // Ten in 60 s.
    time::advance(Duration::from_millis(5_999)).await;
    assert!(!budget.withdraw());
    time::advance(Duration::from_millis(1)).await;
    assert!(budget.withdraw());
    assert!(!budget.withdraw());

    time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(budget.balance(), 10);
    assert_eq!(withdraw_all(&budget), 10);
}

#[tokio::test(start_paused = true)]
async fn the_refill_is_as_fast_as_it_is_said_however_often_it_is_asked_for() {
    for (reserve, refill, step, steps, want) in [
        // A hundredth of a retry takes 60 ms, which is no multiple of the steps.
        (10, 60_000, 710, 8_450, 999..=999),
        (10, 60_000, 1, 60_000, 10..=10),
        // A retry takes 8.57 ms. Its time is rounded up, so it never comes too soon.
        (7, 60, 1, 6_000, 6_000 / 9..=700),
    ] {
        let settings = RetryBudgetSettings::new()
            .with_reserve(reserve)
            .with_refill(Some(Duration::from_millis(refill)));
        let budget = RetryBudget::new(settings).unwrap();
        withdraw_all(&budget);
        let mut retries = 0;

        for _ in 0..steps {
            time::advance(Duration::from_millis(step)).await;
            retries += withdraw_all(&budget);
        }

        assert!(want.contains(&retries), "{retries} of {want:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reserve_that_does_not_refill_is_used_once() {
    let settings = RetryBudgetSettings::new().with_refill(None);
    let budget = RetryBudget::new(settings).unwrap();
    assert_eq!(withdraw_all(&budget), 10);

    time::advance(Duration::from_secs(365 * 24 * 3_600)).await;

    assert!(!budget.withdraw());
}

#[tokio::test(start_paused = true)]
async fn what_calls_have_added_is_kept_beside_the_refill() {
    let budget = RetryBudget::default();
    withdraw_all(&budget);
    for _ in 0..100 {
        budget.deposit();
    }

    // 20 are more than the reserve, so time adds nothing.
    time::advance(Duration::from_secs(3_600)).await;

    assert_eq!(withdraw_all(&budget), 20);
}

#[tokio::test(start_paused = true)]
async fn clones_share_one_budget() {
    let budget = RetryBudget::default();
    let clone = budget.clone();

    withdraw_all(&budget);

    assert!(!clone.withdraw());
    assert_eq!(format!("{clone:?}"), "RetryBudget { balance: 0, .. }");
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let settings = RetryBudgetSettings::new;
    let refill = |refill| settings().with_refill(Some(refill));
    for (settings, want) in [
        (settings().with_percent(1_000), None),
        (
            settings().with_percent(1_001),
            Some(InvalidRetryBudget::Percent),
        ),
        (settings().with_ceiling(100_000), None),
        (
            settings().with_ceiling(100_001),
            Some(InvalidRetryBudget::Ceiling),
        ),
        (settings().with_reserve(100), None),
        (
            settings().with_reserve(101),
            Some(InvalidRetryBudget::Reserve),
        ),
        (
            settings().with_reserve(0).with_ceiling(0).with_percent(0),
            None,
        ),
        (refill(Duration::ZERO), Some(InvalidRetryBudget::Refill)),
        (refill(Duration::from_millis(1)), None),
        (refill(Duration::MAX), Some(InvalidRetryBudget::Refill)),
    ] {
        let got = RetryBudget::new(settings).err();
        assert_eq!(got, want, "{settings:?}");
        if let Some(error) = got {
            let field = format!("{error:?}").to_lowercase();
            assert!(error.to_string().starts_with(&field), "{error}");
        }
    }
}

#[test]
fn nothing_allowed_is_nothing() {
    let settings = RetryBudgetSettings::new().with_percent(0).with_reserve(0);
    let budget = RetryBudget::new(settings).unwrap();

    budget.deposit();

    assert!(!budget.withdraw());
}

fn withdraw_all(budget: &RetryBudget) -> u32 {
    (0..).take_while(|_| budget.withdraw()).count() as u32
}
