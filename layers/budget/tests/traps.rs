//! What goes wrong in other libraries, and does not here.

mod support;

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use steadfast_budget::{Budget, BudgetLayer, Keyed, RetryBudget, RetryBudgetSettings};
use support::{Request, Reserving, global, limit, make_ready, ms, over, send};
use tokio::time::{self, Instant};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, retry::budget::Budget as _};

/// tower's budget turns a share into a whole number of deposits per retry, so that 60 %
/// became 100 % and 35 % became 50 %.
#[test]
fn trap_t2_a_share_is_kept_to_the_percent() {
    for percent in 0..=300 {
        let settings = RetryBudgetSettings::new()
            .with_percent(percent)
            .with_reserve(0)
            .with_ceiling(1_000);
        let budget = RetryBudget::new(settings).unwrap();

        for _ in 0..100 {
            budget.deposit();
        }

        let retries = (0..).take_while(|_| budget.withdraw()).count();
        assert_eq!(retries, percent as usize, "of 100 first attempts");
    }
}

/// Counters that are loaded, changed and stored lose what came in between.
#[test]
fn trap_s1_no_deposit_is_lost_between_threads() {
    const EACH: u32 = 1_000_000;
    let budget = strict(1, 0, 100_000);

    on_four_threads(|| {
        for _ in 0..EACH {
            budget.deposit();
        }
    });

    assert_eq!(budget.balance(), 4 * EACH / 100);
}

/// The same with what is taken: a retry that is there is taken twice.
#[test]
fn trap_s2_no_retry_is_taken_twice_between_threads() {
    const EACH: usize = 500_000;
    let budget = strict(100, 0, 100_000);
    let taken = AtomicUsize::new(0);

    on_four_threads(|| {
        for _ in 0..EACH {
            budget.deposit();
            taken.fetch_add(usize::from(budget.withdraw()), Ordering::Relaxed);
        }
    });

    let left = budget.balance() as usize;
    assert_eq!(taken.into_inner() + left, 4 * EACH);
}

/// smithy's default bucket gets nothing back with time: a caller with few calls that has
/// used it up hardly retries again.
#[tokio::test(start_paused = true)]
async fn trap_smithy_the_reserve_comes_back_with_time() {
    let budget = RetryBudget::default();
    while budget.withdraw() {}

    time::advance(Duration::from_secs(60)).await;

    assert_eq!((0..).take_while(|_| budget.withdraw()).count(), 10);
}

/// governor keeps every key that it has ever seen.
#[tokio::test(start_paused = true)]
async fn trap_g1_idle_keys_are_dropped() {
    let limits = Keyed::new(limit("session", "1/s"), |request: &Request| request.session);
    let limits = limits.with_max_keys(NonZeroUsize::new(100_000).unwrap());
    let mut service = Budget::new(Reserving::new(), limits.clone());
    let mut most = 0;

    for session in 0..200_000 {
        send(&mut service, Request::of(session)).await.unwrap();
        most = most.max(limits.keys());
        if session % 10 == 9 {
            time::advance(ms(10)).await;
        }
    }

    // One new key per millisecond, each of them busy for a second and kept for a minute.
    assert!((61_000..=61_010).contains(&most), "{most}");
}

/// A clock of its own does not obey tokio's, and a test of a long time takes as long.
#[tokio::test(start_paused = true)]
async fn trap_p8_a_paused_clock_is_obeyed() {
    let limits = Keyed::new(limit("session", "1/h"), |request: &Request| request.session);
    let mut service = Budget::new(Reserving::new(), limits);
    send(&mut service, Request::of(1)).await.unwrap();
    send(&mut service, Request::of(1)).await.unwrap_err();

    time::advance(Duration::from_secs(3_600)).await;

    send(&mut service, Request::of(1)).await.unwrap();
}

/// A bound that begins at the first poll lets a call wait for longer than it may.
#[tokio::test(start_paused = true)]
async fn trap_p12_the_bound_begins_at_the_call() {
    let mut service = Budget::new(Reserving::new(), global("1/s")).with_max_wait(ms(2_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let _first = service.call(Request::of(1));
    let second = service.call(Request::of(1));

    // By now it is only the turn of the first one, and the second one would come after
    // its bound, though it was never polled before.
    time::advance(ms(2_000)).await;
    let begin = Instant::now();
    let failure = second.await.unwrap_err();

    assert_eq!(begin.elapsed(), ms(0));
    assert_eq!(failure.retry_in(), Some(ms(1_000)));
    assert_eq!(failure.elapsed(), Some(ms(2_000)));
}

/// A rejection that does not say of what, and until when.
#[tokio::test(start_paused = true)]
async fn trap_p15_a_rejection_has_its_name_and_time() {
    let mut service = Budget::new(Reserving::new(), global("1/min"));
    send(&mut service, Request::of(1)).await.unwrap();
    time::advance(Duration::from_secs(20)).await;

    let failure = send(&mut service, Request::of(1)).await.unwrap_err();

    assert_eq!(over(&failure).limit(), "all");
    assert_eq!(over(&failure).retry_in(), Duration::from_secs(40));
    assert_eq!(failure.retry_in(), Some(Duration::from_secs(40)));
    let line = failure.to_string();
    assert!(line.contains("\"all\"") && line.contains("40"), "{line}");
}

/// A layer that makes new state for each service limits nothing where a router makes a
/// service per route or per connection.
#[tokio::test(start_paused = true)]
async fn trap_p16_the_services_of_a_layer_share_their_limits() {
    let keyed = Keyed::new(limit("session", "1/h"), |request: &Request| request.session);
    let layer = BudgetLayer::new(keyed.then(global("2/h")));
    let mut admitted = 0;

    for _ in 0..10 {
        let mut service = layer.clone().layer(Reserving::new());
        admitted += u32::from(send(&mut service, Request::of(1)).await.is_ok());
    }

    assert_eq!(admitted, 1);
}

/// Waiters that look again every millisecond, or that all wake for one free place.
#[tokio::test(start_paused = true)]
async fn trap_p18_a_waiter_is_polled_at_its_turn_only() {
    let mut service = Budget::new(Reserving::new(), global("10/s burst 1"))
        .with_max_wait(Duration::from_secs(60));
    send(&mut service, Request::of(1)).await.unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let waiters: Vec<_> = (0..100)
        .map(|_| {
            let mut response = Box::pin(service.call(Request::of(1)));
            let polls = Arc::clone(&polls);
            tokio::spawn(std::future::poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                response.as_mut().poll(cx)
            }))
        })
        .collect();

    for (turn, waiter) in (1..).zip(waiters) {
        waiter.await.unwrap().unwrap();
        assert_eq!(begin.elapsed(), ms(100 * turn));
    }

    // Once to begin, once for its turn.
    assert_eq!(polls.load(Ordering::Relaxed), 200);
}

/// A waiter that keeps the readiness of the inner service keeps others from it.
#[tokio::test(start_paused = true)]
async fn trap_bulkhead_a_waiter_holds_no_readiness() {
    let inner = Reserving::new();
    let mut service = Budget::new(inner.clone(), global("1/s")).with_max_wait(ms(60_000));
    make_ready(&mut service).await;
    send(&mut service, Request::of(1)).await.unwrap();

    make_ready(&mut service).await;
    let mut waiter = task::spawn(service.call(Request::of(1)));
    for _ in 0..9 {
        assert_pending!(waiter.poll());
        assert_eq!(inner.reserved(), 0);
        time::advance(ms(100)).await;
    }
    time::advance(ms(100)).await;

    assert_ready_ok!(waiter.poll());
    assert_eq!(inner.reserved(), 0);
}

/// tower's rate limit panics if it is called without having been made ready.
#[tokio::test(start_paused = true)]
async fn trap_misuse_a_call_that_was_not_made_ready_is_no_panic_of_ours() {
    let mut service = Budget::new(tower::service_fn(ok), global("1/h"));

    service.call(Request::of(1)).await.unwrap();
    let failure = service.call(Request::of(1)).await.unwrap_err();

    assert_eq!(over(&failure).limit(), "all");
}

async fn ok(_: Request) -> Result<(), steadfast_classify::Failure> {
    Ok(())
}

/// A budget in which time changes nothing.
fn strict(percent: u32, reserve: u32, ceiling: u32) -> RetryBudget {
    let settings = RetryBudgetSettings::new()
        .with_percent(percent)
        .with_reserve(reserve)
        .with_ceiling(ceiling)
        .with_refill(None);
    RetryBudget::new(settings).expect("right settings")
}

/// Runs it on four threads that begin together.
fn on_four_threads(run: impl Fn() + Sync) {
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                begin.wait();
                run();
            });
        }
    });
}
