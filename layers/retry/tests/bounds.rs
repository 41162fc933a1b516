//! What ends a call that could be repeated: just before each bound, and just after.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use steadfast_classify::{Class, Failure, Limits, Phase};
use steadfast_retry::{Budget, NoBudget, RetryLayer, Settings};

mod support;
use support::{Counting, Request, even, failed, layer, ms, run, secs};

const ROUGHLY_NOW: Duration = ms(1);

fn busy(after: Duration) -> support::Answer {
    Err(Failure::new(Class::Overloaded).with_retry_after(after))
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_so_often_and_no_more() {
    for max_retries in [0, 1, 3, 7] {
        let script = vec![failed(Class::NotSent); max_retries as usize + 1];
        let layer = layer(even().with_max_retries(max_retries));

        let run = run(&layer, Request::write(), script).await;

        assert_eq!(run.failure().attempts(), max_retries + 1);
        assert_eq!(run.failure().class(), Class::NotSent);
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_may_succeed() {
    let mut script = vec![failed(Class::NotSent); 3];
    script.push(Ok("done"));

    let run = run(&layer(even()), Request::write(), script).await;

    assert_eq!(run.result.as_deref().unwrap(), "done");
    assert_eq!(run.waits(), [ms(100), ms(200), ms(400)]);
}

#[tokio::test(start_paused = true)]
async fn a_calls_own_limit_replaces_the_default_both_ways() {
    for (default, own) in [(3, 0), (3, 1), (0, 2), (1, 5)] {
        let script = vec![failed(Class::NotSent); own as usize + 1];
        let request = Request::write().with_max_retries(own);
        let layer = layer(even().with_max_retries(default));

        run(&layer, request, script).await;
    }
    // Limits that say nothing about retries leave the default alone.
    let mut request = Request::write();
    request
        .context
        .set_limits(Arc::new(Limits::new().with_total(secs(60))));
    run(&layer(even()), request, vec![failed(Class::NotSent); 4]).await;
}

#[tokio::test(start_paused = true)]
async fn trap_smithy_a_wait_is_never_shorter_than_the_server_or_our_own_side_asked_for() {
    let own = Failure::new(Class::NotSent).with_retry_in(secs(3));
    let both = Failure::new(Class::Overloaded)
        .with_retry_after(secs(2))
        .with_retry_in(secs(4));
    let layer = layer(Settings::new());
    for (answer, floor) in [
        (busy(secs(1)), secs(1)),
        (busy(secs(9)), secs(9)),
        (Err(own), secs(3)),
        (Err(both), secs(4)),
    ] {
        let run = run(&layer, Request::write(), [answer, Ok("done")]).await;

        assert!(run.waits()[0] >= floor, "{:?} < {floor:?}", run.waits());
        assert!(run.waits()[0] <= floor + ms(100) + ROUGHLY_NOW);
    }
}

#[tokio::test(start_paused = true)]
async fn callers_that_were_told_the_same_time_do_not_come_back_at_the_same_moment() {
    let layer = layer(Settings::new()).with_seed(1);
    let mut waits = std::collections::HashSet::new();
    for _ in 0..50 {
        let run = run(&layer, Request::write(), [busy(secs(2)), Ok("done")]).await;
        waits.insert(run.waits()[0]);
    }
    // Out of 100 milliseconds.
    assert!(waits.len() > 20, "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_longer_wait_than_the_longest_ends_the_call_at_once() {
    let layer = layer(even().with_max_wait(secs(10)));

    let within = run(&layer, Request::write(), [busy(secs(10)), Ok("done")]).await;
    assert_eq!(within.waits(), [secs(10)]);

    let above = secs(10) + Duration::from_nanos(1);
    let beyond = run(&layer, Request::write(), [busy(above)]).await;
    assert_eq!(beyond.took, ms(0), "waited before it gave up");
    assert_eq!(beyond.failure().retry_after(), Some(above));

    let endless = run(&layer, Request::write(), [busy(Duration::MAX)]).await;
    assert_eq!(endless.took, ms(0));
}

#[tokio::test(start_paused = true)]
async fn the_spread_on_top_of_a_floor_does_not_exceed_the_longest_wait() {
    let layer = layer(Settings::new());
    for _ in 0..20 {
        let run = run(&layer, Request::write(), [busy(secs(10)), Ok("done")]).await;
        assert_eq!(run.waits(), [secs(10)]);
    }
}

#[tokio::test(start_paused = true)]
async fn no_wait_goes_past_the_deadline() {
    let layer = layer(even());
    // The first wait is 100 ms, the second 200 ms.
    for (due, attempts) in [
        (ms(99), 1),
        (ms(100), 1),
        (ms(101), 2),
        (ms(300), 2),
        (ms(301), 3),
    ] {
        let request = Request::write().due_in(due);
        let script = vec![failed(Class::NotSent); attempts];

        let run = run(&layer, request, script).await;

        assert!(run.took < due, "due in {due:?}");
        assert_eq!(run.failure().attempts() as usize, attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_ends_the_call() {
    let request = Request::write().due_in(ms(0));

    let run = run(&layer(even()), request, [failed(Class::NotSent)]).await;

    assert_eq!(run.took, ms(0));
}

#[tokio::test(start_paused = true)]
async fn a_floor_beyond_the_deadline_ends_the_call_with_what_the_server_said() {
    let request = Request::write().due_in(secs(5));

    let run = run(&layer(even()), request, [busy(secs(6))]).await;

    assert_eq!(run.took, ms(0), "slept in vain");
    assert_eq!(run.failure().retry_after(), Some(secs(6)));
}

#[tokio::test(start_paused = true)]
async fn trap_p8_waits_and_deadlines_obey_a_paused_clock() {
    let request = Request::write().due_in(secs(60));
    let layer = layer(Settings::new().with_max_wait(secs(8)));
    tokio::time::advance(secs(59)).await;

    // One second is left on this clock; on the clock of the wall it is still a minute.
    let run = run(&layer, request, vec![failed(Class::NotSent); 2]).await;

    assert!(run.took >= ms(500) && run.took < secs(1), "{:?}", run.took);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_refuses_ends_the_call_with_its_last_error() {
    for allowed in [0, 1, 2] {
        let budget = Counting::up_to(allowed);
        let layer = layer(even()).with_budget(Arc::clone(&budget));
        let script = vec![failed(Class::NotSent); allowed as usize + 1];

        let run = run(&layer, Request::write(), script).await;

        assert_eq!(run.failure().attempts(), allowed + 1);
        assert_eq!(run.failure().class(), Class::NotSent);
        assert_eq!(budget.withdrawals(), allowed + 1, "the last was refused");
    }
}

#[tokio::test(start_paused = true)]
async fn only_an_attempt_that_would_be_made_is_paid_for() {
    let budget = Counting::up_to(100);
    let layer = layer(even().with_max_retries(1)).with_budget(Arc::clone(&budget));
    let soon = Request::write().due_in(ms(50));

    run(&layer, Request::write(), [failed(Class::Answered)]).await;
    run(&layer, Request::write(), [busy(secs(60))]).await;
    run(&layer, soon, [failed(Class::NotSent)]).await;
    assert_eq!(budget.withdrawals(), 0);

    // One retry, and then there is no other.
    run(&layer, Request::write(), vec![failed(Class::NotSent); 2]).await;
    assert_eq!(budget.withdrawals(), 1);
    assert_eq!(budget.deposits(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_lost_its_session_costs_no_budget() {
    let budget = Counting::up_to(0);
    let layer = layer(even()).with_budget(Arc::clone(&budget));
    let lost = Failure::new(Class::NotSent).with_phase(Phase::Session);

    let again = run(&layer, Request::write(), [Err(lost.clone()), Ok("done")]).await;
    assert!(again.result.is_ok());
    assert_eq!(budget.withdrawals(), 0);

    // It is bounded all the same.
    let always = run(&layer, Request::write(), vec![Err(lost); 4]).await;
    assert_eq!(always.failure().attempts(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_budget_may_be_shared_as_a_trait_object() {
    let budget: Arc<dyn Budget + Send + Sync> = Arc::new(NoBudget);
    let layer: RetryLayer<dyn Budget + Send + Sync> = layer(even()).with_budget(budget);

    let run = run(
        &layer,
        Request::write(),
        [failed(Class::NotSent), Ok("done")],
    )
    .await;

    assert!(run.result.is_ok());
}

/// What a server may do, with how long it asks to be left alone.
fn answers() -> impl Strategy<Value = Vec<support::Answer>> {
    let class = prop_oneof![
        Just(Class::NotSent),
        Just(Class::Overloaded),
        Just(Class::Timeout),
        Just(Class::Unknown),
        Just(Class::Answered),
    ];
    let failure = (class, prop::option::of(0_u64..12_000)).prop_map(|(class, after)| {
        let failure = Failure::new(class);
        Err(match after {
            Some(after) => failure.with_retry_after(ms(after)),
            None => failure,
        })
    });
    prop::collection::vec(prop_oneof![9 => failure, 1 => Just(Ok("done"))], 20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn there_are_never_more_attempts_than_allowed_and_none_past_the_deadline(
        answers in answers(),
        max_retries in 0_u32..12,
        due in prop::option::of(0_u64..60_000),
        repeatable: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut request = if repeatable { Request::read() } else { Request::write() };
            if let Some(due) = due {
                request = request.due_in(ms(due));
            }
            let layer = layer(Settings::new().with_max_retries(max_retries));

            let (attempts, last) = support::run_freely(&layer, request, answers).await;

            assert!(attempts >= 1 && attempts <= max_retries + 1);
            if let Some(due) = due
                && attempts > 1
            {
                // A timer fires at the next whole millisecond.
                assert!(last <= ms(due), "attempt {attempts} began after {last:?}");
            }
        });
    }
}
