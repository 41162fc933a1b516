//! What is done by hand, and seen.

mod support;

use steadfast_circuit_breaker::{CircuitOpen, OpenCause, Settings, State, Transition, Transitions};
use steadfast_classify::Class;
use support::{Circuit, failure, secs};
use tokio::time::{Instant, advance, timeout};
use tokio_test::{assert_pending, assert_ready_eq, task};

#[tokio::test(start_paused = true)]
async fn an_isolated_circuit_turns_calls_away_until_it_is_reset() {
    let mut circuit = Circuit::new(Settings::new());

    circuit.breaker().isolate();
    advance(secs(100_000)).await;
    let away = circuit.rejected();
    assert_eq!(away.retry_in(), None);
    let open: &CircuitOpen = away.find_source().unwrap();
    assert_eq!(
        (open.state(), open.cause()),
        (State::Isolated, OpenCause::Isolated)
    );

    circuit.breaker().reset();
    circuit.succeed(1).await;
    assert_eq!(circuit.breaker().state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_in_an_isolated_circuit_changes_nothing_and_is_marked() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let probe = circuit.passes();

    circuit.breaker().isolate();
    let failure = probe.fails(failure(Class::Unknown)).await;

    assert!(failure.is_circuit_open());
    assert_eq!(failure.retry_in(), None);
    assert_eq!(circuit.breaker().state(), State::Isolated);
}

#[tokio::test(start_paused = true)]
async fn a_reset_circuit_is_as_new_in_every_state() {
    let by_hand: [fn(&Circuit); 4] = [
        |_| {},
        |circuit| circuit.breaker().isolate(),
        |circuit| circuit.breaker().reset(),
        |circuit| circuit.breaker().observe_only(false),
    ];
    for (n, prepare) in by_hand.iter().enumerate() {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;
        circuit.fail(1, Class::Unknown).await;
        prepare(&circuit);

        circuit.breaker().reset();

        let snapshot = circuit.breaker().snapshot();
        assert_eq!((snapshot.state, snapshot.trips), (State::Closed, 0), "{n}");
        circuit.fail(4, Class::Unknown).await;
        assert_eq!(circuit.breaker().state(), State::Closed, "{n}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_from_before_a_reset_do_not_count() {
    let mut circuit = Circuit::new(Settings::new());
    circuit.fail(4, Class::Unknown).await;
    let old = circuit.passes();

    circuit.breaker().reset();
    old.fails(failure(Class::Unknown)).await;

    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn a_circuit_that_only_observes_counts_and_tells_and_turns_nobody_away() {
    let mut circuit = Circuit::new(Settings::new().with_observe_only(true));
    let watch = circuit.breaker().watch();

    // It opens, and calls pass, whatever becomes of them.
    circuit.fail(4, Class::Unknown).await;
    let fifth = circuit.passes().fails(failure(Class::Unknown)).await;
    assert_eq!(watch.current().to, State::Open);
    assert!(!fifth.is_circuit_open());
    circuit.succeed(2).await;
    circuit.fail(2, Class::Unknown).await;
    assert_eq!(circuit.breaker().state(), State::Open);
    assert_eq!(circuit.breaker().snapshot().rejected, 4);

    // One call is the probe; those that pass beside it decide nothing.
    advance(secs(30)).await;
    let probe = circuit.passes();
    circuit.succeed(1).await;
    circuit.fail(1, Class::Unknown).await;
    assert_eq!(watch.current().to, State::HalfOpen);
    probe.answers().await;
    assert_eq!(watch.current().to, State::Closed);
    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);
}

#[tokio::test(start_paused = true)]
async fn observing_can_end_and_begin_at_any_time() {
    let mut circuit = Circuit::opened(Settings::new()).await;
    circuit.rejected();

    circuit.breaker().observe_only(true);
    circuit.succeed(1).await;

    circuit.breaker().observe_only(false);
    circuit.rejected();
}

#[tokio::test(start_paused = true)]
async fn somebodys_word_holds_for_a_circuit_that_only_observes() {
    let mut circuit = Circuit::new(Settings::new().with_observe_only(true));

    circuit.breaker().isolate();
    circuit.rejected();

    circuit.breaker().reset();
    assert!(circuit.breaker().snapshot().observe_only);
    circuit.succeed(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_says_what_there_is() {
    let mut circuit = Circuit::new(Settings::new());
    circuit.fail(3, Class::Unknown).await;
    let closed = circuit.breaker().snapshot();
    assert_eq!(&*closed.name, "server");
    assert_eq!(
        (closed.key, closed.window, closed.cause),
        (None, None, None)
    );
    assert_eq!(
        (closed.state, closed.consecutive_failures),
        (State::Closed, 3)
    );

    circuit.fail(2, Class::Timeout).await;
    circuit.rejected();
    advance(secs(10)).await;
    let open = circuit.breaker().snapshot();
    assert_eq!((open.state, open.trips, open.rejected), (State::Open, 1, 1));
    assert_eq!(open.cause, Some(OpenCause::ConsecutiveFailures));
    assert_eq!((open.retry_in, open.probing), (Some(secs(20)), false));

    advance(secs(20)).await;
    let overdue = circuit.breaker().snapshot();
    assert_eq!((overdue.state, overdue.retry_in), (State::Open, None));

    let probe = circuit.passes();
    let half_open = circuit.breaker().snapshot();
    assert_eq!(
        (half_open.state, half_open.probing),
        (State::HalfOpen, true)
    );
    assert!(half_open.retry_in > Some(secs(89)));
    drop(probe);
    assert!(!circuit.breaker().snapshot().probing);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_says_it_in_one_line() {
    let mut circuit = Circuit::new(Settings::new());
    circuit.fail(5, Class::Timeout).await;
    assert_eq!(
        circuit.rejected().to_string(),
        "call: rejected before sending: circuit \"server\" is open: \
         too many failures in a row (timeout); try again in 30.0s",
    );

    advance(secs(30)).await;
    let _probe = circuit.passes();
    assert_eq!(
        circuit.rejected().to_string(),
        "call: rejected before sending: circuit \"server\" is half open, and its probe is \
         out: too many failures in a row (timeout)",
    );

    circuit.breaker().isolate();
    assert_eq!(
        circuit.rejected().to_string(),
        "call: rejected before sending: circuit \"server\" is isolated",
    );
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_in_their_order() {
    let mut circuit = Circuit::new(Settings::new());
    let mut watch = circuit.breaker().watch();
    assert_eq!(
        (watch.current().from, watch.current().to),
        (State::Closed, State::Closed)
    );

    circuit.fail(5, Class::Timeout).await;
    let opened = change(&mut watch).await;
    assert_eq!((opened.from, opened.to), (State::Closed, State::Open));
    assert_eq!(opened.cause, Some(OpenCause::ConsecutiveFailures));
    assert_eq!((opened.class, opened.trips), (Some(Class::Timeout), 1));
    assert_eq!(
        (opened.open_for, opened.at),
        (Some(secs(30)), Instant::now())
    );

    advance(secs(30)).await;
    circuit.succeed(1).await;
    // Two changes, of which the newest is seen.
    let closed = change(&mut watch).await;
    assert_eq!((closed.from, closed.to), (State::HalfOpen, State::Closed));
    assert_eq!((closed.cause, closed.class), (None, None));
    assert_eq!(closed.generation, opened.generation + 2);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_by_a_change_and_by_the_end() {
    let circuit = Circuit::new(Settings::new());
    let breaker = circuit.breaker().clone();
    let mut watch = breaker.watch();

    let mut changed = task::spawn(watch.changed());
    assert_pending!(changed.poll());
    breaker.isolate();
    assert!(changed.is_woken());
    drop(changed);
    assert_eq!(change(&mut watch).await.to, State::Isolated);

    let mut changed = task::spawn(watch.changed());
    assert_pending!(changed.poll());
    drop((circuit, breaker));
    assert_ready_eq!(changed.poll(), None);
}

/// The next change, which must be there already.
async fn change(watch: &mut Transitions) -> Transition {
    let changed = timeout(secs(1), watch.changed()).await;
    changed.expect("told at once").expect("there are handles")
}
