//! Calls that wait for their turn.

mod support;

use std::time::Duration;

use steadfast_budget::{Admit, Budget, BudgetLayer, Keyed, ResponseFuture};
use steadfast_classify::Failure;
use support::{Request, Reserving, global, limit, ms, over, send};
use tokio::time::{self, Instant};
use tokio_test::{
    assert_pending, assert_ready_err, assert_ready_ok,
    task::{self, Spawn},
};
use tower::{Layer, Service};
use tower_test::mock;

type Response<A> = Spawn<ResponseFuture<Reserving, A, Request>>;

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_its_turn_and_no_longer() {
    let mut service = waiting("1/s", ms(5_000));
    let begin = Instant::now();

    for turn in 0..4 {
        send(&mut service, Request::of(1)).await.unwrap();
        assert_eq!(begin.elapsed(), ms(1_000 * turn));
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_at_the_bound_is_waited_for_and_one_after_it_is_not() {
    let nano = Duration::from_nanos(1);
    for (bound, waits) in [(ms(1_000), true), (ms(1_000) - nano, false)] {
        let mut service = waiting("1/s", bound);
        send(&mut service, Request::of(1)).await.unwrap();
        let begin = Instant::now();

        let sent = send(&mut service, Request::of(1)).await;

        assert_eq!(sent.is_ok(), waits, "{bound:?}");
        // Rejected at once: to wait would have been in vain.
        assert_eq!(begin.elapsed(), if waits { ms(1_000) } else { ms(0) });
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_has_to_come_before_the_deadline() {
    let nano = Duration::from_nanos(1);
    for (deadline, waits) in [
        (ms(1_000) + nano, true),
        // At its deadline it could only time out.
        (ms(1_000), false),
        (ms(0), false),
    ] {
        let mut service = waiting("1/s", ms(60_000));
        send(&mut service, Request::of(1)).await.unwrap();
        let begin = Instant::now();

        let request = Request::of(1).with_deadline(begin + deadline);
        let sent = send(&mut service, request).await;

        assert_eq!(sent.is_ok(), waits, "{deadline:?}");
        assert_eq!(begin.elapsed(), if waits { ms(1_000) } else { ms(0) });
        if let Err(failure) = sent {
            assert_eq!(failure.retry_in(), Some(ms(1_000)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_does_not_keep_out_a_call_that_need_not_wait() {
    let mut service = waiting("1/s", ms(1_000));

    let request = Request::of(1).with_deadline(Instant::now());

    send(&mut service, request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn first_come_first_served_whoever_is_polled_first() {
    let mut service = waiting("1/s", ms(60_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let mut waiters: Vec<_> = (0..5).map(|_| call(&mut service)).collect();

    for turn in 0..5 {
        time::advance(ms(1_000)).await;
        // The last one asks first, and yet it is the turn of the first one.
        for (index, waiter) in waiters.iter_mut().enumerate().skip(turn).rev() {
            let answered = waiter.poll().is_ready();
            assert_eq!(answered, index == turn, "waiter {index} at turn {turn}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_later_does_not_overtake() {
    let limits = global("1/s");
    let mut patient = Budget::new(Reserving::new(), limits.clone()).with_max_wait(ms(60_000));
    let mut hasty = Budget::new(Reserving::new(), limits);
    send(&mut patient, Request::of(1)).await.unwrap();
    let mut first = call(&mut patient);

    // There is a call in the bucket now, but the first waiter has not taken it yet.
    time::advance(ms(1_000)).await;
    let failure = send(&mut hasty, Request::of(1)).await.unwrap_err();
    let mut second = call(&mut patient);

    assert_eq!(failure.retry_in(), Some(ms(1_000)));
    assert_ready_ok!(first.poll());
    assert_pending!(second.poll());
    time::advance(ms(1_000)).await;
    assert_ready_ok!(second.poll());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_counts_those_who_wait() {
    let mut service = waiting("1/s", ms(3_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let _waiters: Vec<_> = (0..3).map(|_| call(&mut service)).collect();
    time::advance(ms(400)).await;

    // The fourth turn would be 3.6 s from now.
    let failure = send(&mut service, Request::of(1)).await.unwrap_err();

    assert_eq!(failure.retry_in(), Some(ms(3_600)));
    assert_eq!(failure.elapsed(), None, "it did not wait to find out");
}

#[tokio::test(start_paused = true)]
async fn those_behind_one_that_leaves_move_up() {
    for leaver in 0..4 {
        let mut service = waiting("1/s", ms(60_000));
        send(&mut service, Request::of(1)).await.unwrap();
        let begin = Instant::now();
        // Tasks, so that only what is woken is polled.
        let mut waiters: Vec<_> = (0..4)
            .map(|_| service.call(Request::of(1)))
            .map(|response| tokio::spawn(async move { response.await.map(|()| begin.elapsed()) }))
            .collect();

        time::sleep(ms(500)).await;
        waiters.remove(leaver).abort();

        for (turn, waiter) in (1..).zip(waiters) {
            let waited = waiter.await.unwrap().unwrap();
            assert_eq!(waited, ms(1_000 * turn), "after {leaver} left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_granted_and_dropped_goes_to_the_next() {
    let mut service = waiting("1/s", ms(60_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let first = call(&mut service);
    let mut second = call(&mut service);
    let mut third = call(&mut service);

    time::advance(ms(1_000)).await;
    // Whoever looks at the line grants the first one its call.
    assert_pending!(third.poll());
    drop(first);

    assert!(second.is_woken());
    assert_ready_ok!(second.poll());
    assert_pending!(third.poll());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_not_polled_holds_nobody_up() {
    let mut service = waiting("1/s", ms(60_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let mut asleep = task::spawn(service.call(Request::of(1)));
    let mut second = call(&mut service);
    let mut third = call(&mut service);

    // The second one's timer ends at its turn. It grants the first one its call, whose
    // turn it still is, and has its own an interval later.
    time::advance(ms(2_000)).await;
    assert_pending!(second.poll());
    time::advance(ms(1_000)).await;
    assert_ready_ok!(second.poll());
    assert!(third.is_woken());
    assert_pending!(third.poll());
    time::advance(ms(1_000)).await;
    assert_ready_ok!(third.poll());

    assert_ready_ok!(asleep.poll(), "its call was kept for it");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_takes_its_own_call_does_not_wake_itself() {
    let limits = global("1/s");
    let (mut service, mut handle) = mock::spawn_with(move |inner: mock::Mock<Request, ()>| {
        Budget::new(inner, limits.clone()).with_max_wait(ms(60_000))
    });
    handle.allow(0);
    let _first = task::spawn(service.call(Request::of(1)));
    let mut waiter = task::spawn(service.call(Request::of(1)));
    assert_pending!(waiter.poll());

    // It is its turn, but the inner service is not ready.
    time::advance(ms(1_000)).await;
    assert!(waiter.is_woken());
    assert_pending!(waiter.poll());

    assert!(!waiter.is_woken());
    handle.allow(1);
    assert!(waiter.is_woken());
}

#[tokio::test(start_paused = true)]
async fn what_accrued_while_nobody_looked_goes_to_the_line_in_order() {
    let mut service = waiting("1/s burst 3", ms(60_000));
    for _ in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap();
    }
    let mut waiters: Vec<_> = (0..4).map(|_| call(&mut service)).collect();

    time::advance(ms(3_500)).await;
    let answered: Vec<_> = waiters
        .iter_mut()
        .rev()
        .map(|waiter| waiter.poll().is_ready())
        .collect();

    assert_eq!(answered, [false, true, true, true]);
}

#[tokio::test(start_paused = true)]
async fn what_was_paid_to_one_limit_is_not_paid_again_after_a_wait_at_the_next() {
    let session = Keyed::new(limit("session", "1/h burst 3"), |request: &Request| {
        request.session
    });
    let limits = session.then(global("1/s"));
    let mut service = Budget::new(Reserving::new(), limits).with_max_wait(ms(5_000));

    // The second and third one wait at the global limit, and are asked many times.
    send(&mut service, Request::of(1)).await.unwrap();
    for _ in 0..2 {
        let mut waiter = call(&mut service);
        for _ in 0..9 {
            time::advance(ms(100)).await;
            assert_pending!(waiter.poll());
        }
        time::advance(ms(100)).await;
        assert_ready_ok!(waiter.poll());
    }

    let failure = send(&mut service, Request::of(1)).await.unwrap_err();
    assert_eq!(over(&failure).limit(), "session");
}

#[tokio::test(start_paused = true)]
async fn one_bound_is_for_all_limits_together() {
    let session = Keyed::new(limit("session", "1/s"), |request: &Request| request.session);
    let limits = session.then(global("1/min"));
    let mut service = Budget::new(Reserving::new(), limits).with_max_wait(ms(30_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let begin = Instant::now();

    // A second for its session, and then 59 s would be left for all, of which it has 29.
    let failure = send(&mut service, Request::of(1)).await.unwrap_err();

    assert_eq!(begin.elapsed(), ms(1_000));
    assert_eq!(over(&failure).limit(), "all");
    assert_eq!(failure.retry_in(), Some(ms(59_000)));
    assert_eq!(
        failure.elapsed(),
        Some(ms(1_000)),
        "it says how long it waited"
    );
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_is_no_overflow() {
    let mut service = waiting("1/h", Duration::MAX);
    let begin = Instant::now();

    for turn in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap();
        assert_eq!(begin.elapsed(), Duration::from_secs(3_600 * turn));
    }
}

#[tokio::test(start_paused = true)]
async fn keys_wait_in_lines_of_their_own() {
    let limits = Keyed::new(limit("session", "1/s"), |request: &Request| request.session);
    let layer = BudgetLayer::new(limits).with_max_wait(ms(60_000));
    let mut service = layer.layer(Reserving::new());
    for session in 0..10 {
        send(&mut service, Request::of(session)).await.unwrap();
    }
    let mut waiters: Vec<_> = (0..10)
        .map(|session| task::spawn(service.call(Request::of(session))))
        .collect();
    for waiter in &mut waiters {
        assert_pending!(waiter.poll());
    }

    time::advance(ms(1_000)).await;

    for waiter in &mut waiters {
        assert_ready_ok!(waiter.poll());
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_rejected_when_its_turn_is_lost_to_one_that_slept() {
    let mut service = waiting("1/s", ms(2_000));
    send(&mut service, Request::of(1)).await.unwrap();
    let asleep = task::spawn(service.call(Request::of(1)));
    let mut second = call(&mut service);

    // The sleeper takes its call when it should have gone long ago, and the second one
    // would come after its bound.
    time::advance(ms(2_000)).await;
    let failure: Failure = assert_ready_err!(second.poll());

    assert_eq!(failure.retry_in(), Some(ms(1_000)));
    assert_eq!(failure.elapsed(), Some(ms(2_000)));
    drop(asleep);
}

/// A service that lets calls wait.
fn waiting(quota: &str, max_wait: Duration) -> Budget<Reserving, steadfast_budget::Global> {
    Budget::new(Reserving::new(), global(quota)).with_max_wait(max_wait)
}

/// A call that has to wait.
fn call<A>(service: &mut Budget<Reserving, A>) -> Response<A>
where
    A: Admit<Request> + Clone,
{
    let mut response = task::spawn(service.call(Request::of(1)));
    assert_pending!(response.poll());
    response
}
