//! What happens to the work underneath, and how often it is looked at.

use std::{
    future::{Future, pending, poll_fn},
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
};

use futures::FutureExt;
use steadfast_classify::{Failure, Phase};
use steadfast_timeout::Settings;
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Service, ServiceExt, service_fn};
use tower_test::mock;

use crate::wire::{Ping, Req, Script, Wire, ms, timeout};

#[tokio::test(start_paused = true)]
async fn the_call_is_cancelled_before_anybody_hears_of_it() {
    let wire = Wire::new(Script {
        sent: Some(0),
        ..Script::default()
    });
    let mut service = timeout(wire.clone(), Settings::new());
    let mut call = task::spawn(service.call(Req::tracked()));
    assert_pending!(call.poll());

    tokio::task::yield_now().await;
    advance(ms(60_000)).await;
    assert!(assert_ready!(call.poll()).is_err());

    // The response future is still held.
    assert_eq!(wire.logged(), [(0, "sent"), (60_000, "cancelled")]);
    drop(call);
    assert_eq!(wire.logged().len(), 2, "cancelled once");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_cancels_it_at_once() {
    let wire = Wire::new(Script {
        sent: Some(0),
        ..Script::default()
    });
    let mut service = timeout(wire.clone(), Settings::new());
    let mut call = task::spawn(service.call(Req::tracked()));
    assert_pending!(call.poll());

    drop(call);

    assert_eq!(wire.logged(), [(0, "cancelled")]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_answered_is_not_cancelled() {
    let wire = Wire::new(Script {
        sent: Some(1),
        answer: Some(2),
        ..Script::default()
    });

    let answer = timeout(wire.clone(), Settings::new()).oneshot(Req::tracked());

    assert_eq!(answer.await.unwrap(), "pong");
    assert_eq!(wire.logged(), [(1, "sent"), (2, "answered")]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_is_looked_at_twice_and_not_in_between() {
    let polls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&polls);
    let service = service_fn(move |_: Ping| {
        let polls = Arc::clone(&counted);
        poll_fn(move |_| {
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::<Result<(), Failure>>::Pending
        })
    });

    let failed = timeout(service, Settings::new()).oneshot(Ping("x")).await;

    assert_eq!(failed.unwrap_err().elapsed(), Some(ms(60_000)));
    assert_eq!(polls.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn progress_does_not_wake_the_caller() {
    let wire = Wire::new(Script {
        sent: Some(0),
        progress: (1..1_000).map(|n| n * 100).collect(),
        answer: Some(100_000),
        ..Script::default()
    });
    let mut service = timeout(wire, Settings::new());
    let mut call = task::spawn(service.call(Req::tracked()));
    let mut polls = 0;

    let start = Instant::now();
    while call.poll().is_pending() {
        polls += 1;
        while !call.is_woken() {
            advance(ms(100)).await;
            tokio::task::yield_now().await;
        }
    }

    assert!(start.elapsed() >= ms(100_000));
    // The connect limit, the read limit twice, and the answer.
    assert!(polls <= 4, "{polls} polls");
}

/// Not even the timer of the runtime is needed where the answer is there at once.
#[test]
fn an_answer_that_is_there_at_once_needs_no_timer() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let service = service_fn(|_: Req| async { Ok::<_, Failure>("pong") });

    let answer = runtime.block_on(timeout(service, Settings::new()).oneshot(Req::tracked()));

    assert_eq!(answer.unwrap(), "pong");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_uses_up_its_budget_is_timed_all_the_same() {
    let greedy = service_fn(|_: Ping| async {
        loop {
            // Returns `Pending` when the task has used up its budget.
            tokio::task::consume_budget().await;
        }
        #[expect(unreachable_code, reason = "gives the future its type")]
        Ok::<(), Failure>(())
    });
    let settings = Settings::new().with_read(ms(100));
    let call = tokio::spawn(timeout(greedy, settings).oneshot(Ping("x")));

    for _ in 0..100 {
        tokio::task::yield_now().await;
        advance(ms(2)).await;
    }

    assert!(call.is_finished());
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.phase(), Some(Phase::Read));
}

#[tokio::test(start_paused = true)]
async fn a_response_future_is_over_however_it_ended() {
    let answers = service_fn(|_: Ping| async { Ok::<_, Failure>(()) });
    let hangs = service_fn(|_: Ping| pending::<Result<(), Failure>>());
    let (broken, mut handle) = mock::pair::<Ping, ()>();
    handle.send_error("broken");

    assert_over(timeout(answers, Settings::new()).call(Ping("x"))).await;
    assert_over(timeout(hangs, Settings::new()).call(Ping("x"))).await;
    assert_over(timeout(broken, Settings::new()).call(Ping("x"))).await;
}

/// What it held is gone, and it says so when it is polled again.
async fn assert_over<F: Future>(call: F) {
    let mut call = Box::pin(call);
    call.as_mut().await;

    let again = AssertUnwindSafe(call).catch_unwind().await;

    let panic = again.err().expect("it has ended");
    let message = panic.downcast_ref::<&str>().unwrap();
    assert!(message.contains("polled after its end"), "{message}");
}
