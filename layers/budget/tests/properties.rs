//! What holds for every quota, every sequence of calls, and between threads.

mod support;

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use steadfast_budget::{
    Admit, Budget, Global, Keyed, Limit, Patience, Place, Quota, RetryBudget, RetryBudgetSettings,
    Verdict,
};
use support::{Request, Reserving, limit, send};
use tokio::time::{self, Instant};
use tower::{Service, retry::budget::Budget as _};

/// Quotas from one in minutes to many in a millisecond.
fn quotas() -> impl Strategy<Value = Quota> {
    let count = (1..5_000_u32).prop_map(|count| NonZeroU32::new(count).expect("not zero"));
    let burst = (1..20_u32).prop_map(|burst| NonZeroU32::new(burst).expect("not zero"));
    let rate = prop_oneof![
        count.clone().prop_map(Quota::per_second),
        count.clone().prop_map(Quota::per_minute),
        count.prop_map(Quota::per_hour),
    ];
    (rate, burst).prop_map(|(rate, burst)| rate.with_burst(burst).expect("a small burst"))
}

/// Steps in time, in thousandths of an interval of the quota.
fn steps() -> impl Strategy<Value = Vec<u32>> {
    vec(
        prop_oneof![3 => Just(0), 6 => 0..1_500_u32, 1 => 0..30_000_u32],
        1..120,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_window_holds_more_than_its_quota(quota in quotas(), steps in steps()) {
        let limits = Global::new(Limit::new("all", quota));
        let admitted = run(async {
            let mut service = Budget::new(Reserving::new(), limits);
            let mut admitted = Vec::new();
            for step in steps {
                time::advance(quota.interval() * step / 1_000).await;
                match send(&mut service, Request::of(1)).await {
                    Ok(()) => admitted.push(Instant::now()),
                    Err(failure) => {
                        let wait = failure.retry_in().expect("it says when");
                        assert!(!wait.is_zero() && wait <= quota.interval(), "{wait:?}");
                    }
                }
            }
            admitted
        });
        assert_bound(&admitted, quota);
    }

    #[test]
    fn a_call_that_comes_when_it_was_told_to_is_admitted(quota in quotas(), calls in 1..60_u32) {
        let limits = Global::new(Limit::new("all", quota));
        run(async {
            let mut service = Budget::new(Reserving::new(), limits);
            for _ in 0..calls {
                if let Err(failure) = send(&mut service, Request::of(1)).await {
                    time::advance(failure.retry_in().expect("it says when")).await;
                    send(&mut service, Request::of(1)).await.expect("it was told to");
                }
            }
        });
    }

    #[test]
    fn keys_that_are_dropped_and_come_back_keep_to_their_quota(
        quota in quotas(),
        steps in steps(),
        keys in vec(0..12_u64, 120),
        max in 1..12_usize,
    ) {
        let limits = Keyed::new(Limit::new("session", quota), |request: &Request| request.session)
            .with_max_keys(NonZeroUsize::new(max).expect("not zero"));
        let admitted = run(async {
            let mut service = Budget::new(Reserving::new(), limits.clone());
            let mut admitted = vec![Vec::new(); 12];
            for (step, key) in steps.into_iter().zip(keys) {
                time::advance(quota.interval() * step / 1_000).await;
                if send(&mut service, Request::of(key)).await.is_ok() {
                    admitted[key as usize].push(Instant::now());
                }
                assert!(limits.keys() <= max);
            }
            admitted
        });
        for admitted in admitted {
            // Once by its own bucket, and once by the one that is shared.
            assert_at_most(&admitted, quota, 2);
        }
    }

    #[test]
    fn waiters_come_in_their_order_within_their_bound_and_quota(
        quota in quotas(),
        arrivals in vec((0..400_u32, any::<prop::sample::Index>(), 0..8_u32), 1..60),
    ) {
        let limits = Global::new(Limit::new("all", quota));
        // The timer counts milliseconds, and a call may come later by one.
        let tick = Duration::from_millis(1);
        let bound = quota.interval() * 10 + tick;
        let admitted = run(async {
            let mut service = Budget::new(Reserving::new(), limits).with_max_wait(bound);
            let admitted = Arc::new(Mutex::new(Vec::new()));
            let mut tasks = Vec::new();
            for (number, (step, leaver, leaves)) in arrivals.into_iter().enumerate() {
                time::sleep(quota.interval() * step / 1_000).await;
                let (arrived, response) = (Instant::now(), service.call(Request::of(1)));
                let admitted = Arc::clone(&admitted);
                tasks.push(tokio::spawn(async move {
                    if response.await.is_ok() {
                        assert!(arrived.elapsed() <= bound + tick, "{:?}", arrived.elapsed());
                        admitted.lock().expect("not poisoned").push((number, Instant::now()));
                    }
                }));
                if leaves == 0 {
                    tasks[leaver.index(tasks.len())].abort();
                }
            }
            for task in tasks {
                assert!(task.await.err().is_none_or(|error| error.is_cancelled()));
            }
            let mut admitted = admitted.lock().expect("not poisoned").clone();
            admitted.sort_unstable();
            admitted
        });
        // By their order of arrival.
        let at: Vec<_> = admitted.iter().map(|(_, at)| *at).collect();
        assert!(at.is_sorted(), "out of order: {admitted:?}");
        assert_bound(&at, quota);
    }

    #[test]
    fn retries_never_exceed_their_share_and_reserve(
        percent in 0..300_u32,
        reserve in 0..20_u32,
        extra in 0..50_u32,
        refill in prop::option::of(1..100_000_u64),
        steps in vec((0..4_u8, 0..3_000_u64), 1..400),
    ) {
        let settings = RetryBudgetSettings::new()
            .with_percent(percent)
            .with_reserve(reserve)
            .with_ceiling(reserve + extra)
            .with_refill(refill.map(Duration::from_millis));
        run(async {
            let budget = RetryBudget::new(settings).expect("right settings");
            let begin = Instant::now();
            let (mut deposits, mut retries) = (0, 0);
            for (step, millis) in steps {
                match step {
                    0 => time::advance(Duration::from_millis(millis)).await,
                    1 => retries += u128::from(budget.withdraw()),
                    _ => {
                        budget.deposit();
                        deposits += 1;
                    }
                }
                assert!(budget.balance() <= reserve + extra);
                let refilled = refill.map_or(0, |refill| {
                    begin.elapsed().as_millis() * u128::from(reserve) * 100 / u128::from(refill)
                });
                let paid = u128::from(reserve) * 100 + u128::from(percent) * deposits + refilled;
                assert!(retries * 100 <= paid, "{retries} retries of {paid} hundredths");
            }
        });
    }
}

#[test]
fn threads_together_get_the_burst_and_no_more() {
    let global = Global::new(limit("all", "1/h burst 1000"));
    let keyed = Keyed::new(limit("session", "1/h burst 1000"), |request: &Request| {
        request.session
    });
    let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];

    on_four_threads(|_| {
        for _ in 0..1_000 {
            counts[0].fetch_add(usize::from(admits(&global)), Ordering::Relaxed);
            counts[1].fetch_add(usize::from(admits(&keyed)), Ordering::Relaxed);
        }
    });

    assert_eq!(counts.map(AtomicUsize::into_inner), [1_000, 1_000]);
}

#[test]
fn threads_that_come_and_go_leave_nothing_in_the_line() {
    // Twenty thousand calls of which a thousand are there: the others stand in the line,
    // look again, and leave, in all orders.
    let limits = Global::new(limit("all", "1/h burst 1000"));
    let patience = Patience::new(Some(Instant::now() + Duration::from_secs(100_000_000)));
    let admitted = AtomicUsize::new(0);
    let admit = |place: &mut Place| {
        let verdict = limits.admit(&Request::of(1), place, patience);
        let is_admitted = matches!(verdict, Verdict::Admitted);
        admitted.fetch_add(usize::from(is_admitted), Ordering::Relaxed);
        is_admitted
    };

    on_four_threads(|thread| {
        let mut places: Vec<Place> = Vec::new();
        for round in 0..5_000 {
            let mut place = Place::default();
            if !admit(&mut place) {
                places.push(place);
            }
            if round % 3 == 0 && !places.is_empty() {
                let index = (round * 7 + thread) % places.len();
                // It leaves, or looks whether it is its turn.
                if round % 2 == 0 || admit(&mut places[index]) {
                    places.swap_remove(index);
                }
            }
        }
    });

    assert_eq!(admitted.load(Ordering::Relaxed), 1_000);
    let Verdict::Wait(turn) = limits.admit(&Request::of(1), &mut Place::default(), patience) else {
        panic!("there is none left");
    };
    assert!(
        turn <= Instant::now() + Duration::from_secs(3_600),
        "nobody is before it"
    );
}

#[test]
fn threads_get_no_more_retries_than_their_deposits_pay_for() {
    let settings = RetryBudgetSettings::new()
        .with_refill(None)
        .with_ceiling(100_000);
    let budget = RetryBudget::new(settings).expect("right settings");
    let retries = AtomicUsize::new(0);

    on_four_threads(|_| {
        for _ in 0..50_000 {
            budget.deposit();
            retries.fetch_add(usize::from(budget.withdraw()), Ordering::Relaxed);
        }
    });

    let retries = retries.into_inner() + budget.balance() as usize;
    assert_eq!(
        retries,
        4 * 50_000 / 5 + 10,
        "20 % and the reserve, to the last one"
    );
}

fn admits<A: Admit<Request>>(limits: &A) -> bool {
    let mut ticket = A::Ticket::default();
    let verdict = limits.admit(&Request::of(1), &mut ticket, Patience::new(None));
    matches!(verdict, Verdict::Admitted)
}

/// In any window, at most a burst, and one more for each interval in it.
fn assert_bound(admitted: &[Instant], quota: Quota) {
    assert_at_most(admitted, quota, 1);
}

fn assert_at_most(admitted: &[Instant], quota: Quota, times: u128) {
    for (first, from) in admitted.iter().enumerate() {
        for (count, to) in (1..).zip(&admitted[first..]) {
            let intervals = (*to - *from).as_nanos() / quota.interval().as_nanos();
            let most = times * (u128::from(quota.burst().get()) + intervals);
            assert!(count <= most, "{count} in {:?} of {quota}", *to - *from);
        }
    }
}

/// Runs it on four threads that begin together.
fn on_four_threads(run: impl Fn(usize) + Sync) {
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (begin, run) = (&begin, &run);
            scope.spawn(move || {
                begin.wait();
                run(thread);
            });
        }
    });
}

/// Runs a test on a clock of its own, which is paused.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(test)
}
