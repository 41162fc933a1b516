//! Marks of one attempt, as the wire and the layer that gives up see them.

use std::time::Duration;

use steadfast_classify::{CallContext, Flight, Origin, Stage};
use tokio::time::{Instant, advance};

const TICK: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_flight_walks_from_new_to_answered() {
    let start = Instant::now();
    let flight = Flight::new();

    // Nobody has claimed it.
    assert_eq!(flight.stage(), (Stage::New, start));
    assert_eq!(flight.sent_at(), None);

    // A wire claims it.
    advance(TICK).await;
    assert!(flight.queued());
    assert_eq!(flight.stage(), (Stage::Queued, start + TICK));
    assert_eq!(flight.sent_at(), None);

    // The first byte leaves.
    advance(TICK).await;
    assert!(flight.sending());
    assert_eq!(flight.stage(), (Stage::Sent, start + 2 * TICK));
    assert_eq!(flight.sent_at(), Some(start + 2 * TICK));

    // The server reports progress: the mark moves, the time of sending does not.
    advance(TICK).await;
    flight.progress();
    assert_eq!(flight.stage(), (Stage::Sent, start + 3 * TICK));
    assert_eq!(flight.sent_at(), Some(start + 2 * TICK));

    // The answer arrives.
    advance(TICK).await;
    flight.answered();
    assert_eq!(flight.stage(), (Stage::Answered, start + 4 * TICK));
    assert_eq!(flight.sent_at(), Some(start + 2 * TICK));
}

#[tokio::test(start_paused = true)]
async fn a_mark_of_an_earlier_stage_changes_nothing() {
    let flight = Flight::new();
    assert!(flight.queued());
    assert!(flight.sending());
    let sent = flight.stage();

    advance(TICK).await;

    assert!(flight.queued(), "claimed is not withdrawn");
    assert!(flight.sending(), "sent stays sent");
    assert_eq!(flight.stage(), sent);
    assert_eq!(flight.sent_at(), Some(sent.1), "the first time counts");
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_flight_may_not_be_sent() {
    let flight = Flight::new();
    assert!(flight.queued());

    advance(TICK).await;
    assert!(flight.withdraw());

    let withdrawn = flight.stage();
    assert_eq!(withdrawn.0, Stage::Withdrawn);
    advance(TICK).await;
    assert!(!flight.sending());
    assert!(!flight.queued());
    flight.progress();
    flight.answered();
    assert_eq!(flight.stage(), withdrawn);
    assert_eq!(flight.sent_at(), None);
}

#[tokio::test(start_paused = true)]
async fn only_a_claimed_and_unsent_flight_can_be_withdrawn() {
    for (stage, want) in [
        (Stage::New, false),
        (Stage::Queued, true),
        (Stage::Sent, false),
        (Stage::Answered, false),
        (Stage::Withdrawn, false),
    ] {
        let flight = brought_to(stage);

        assert_eq!(flight.withdraw(), want, "from {stage:?}");
        assert!(!flight.withdraw(), "a second time, from {stage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_counts_only_while_the_call_runs() {
    for (stage, want) in [
        (Stage::New, Duration::ZERO),
        (Stage::Queued, Duration::ZERO),
        (Stage::Sent, TICK),
        (Stage::Answered, Duration::ZERO),
        (Stage::Withdrawn, Duration::ZERO),
    ] {
        let start = Instant::now();
        let flight = brought_to(stage);

        advance(TICK).await;
        flight.progress();

        assert_eq!(flight.stage(), (stage, start + want), "from {stage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wire_that_never_asked_leaves_no_time_of_sending() {
    let flight = Flight::new();

    flight.answered();

    assert_eq!(flight.stage().0, Stage::Answered);
    assert_eq!(flight.sent_at(), None);
}

#[tokio::test(start_paused = true)]
async fn a_flight_counts_from_when_it_was_made() {
    let called = Instant::now();
    advance(TICK).await;

    let flight = Flight::at(called);

    assert_eq!(flight.stage(), (Stage::New, called));
    assert!(flight.sending());
    assert_eq!(flight.sent_at(), Some(called + TICK));
}

#[test]
fn the_longest_start_limit_counts() {
    let flight = Flight::new();
    assert_eq!(flight.start_limit(), None);

    flight.starting(Duration::from_secs(30));
    flight.starting(Duration::from_secs(5));
    assert_eq!(flight.start_limit(), Some(Duration::from_secs(30)));

    flight.starting(Duration::MAX);
    assert_eq!(flight.start_limit(), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn the_first_description_counts() {
    let flight = Flight::new();
    assert_eq!(flight.origin(), None);

    flight.describe(Origin::server("files").with_operation("read"));
    flight.describe(Origin::server("other"));

    let origin = flight.origin().unwrap();
    assert_eq!(origin.to_string(), "\"read\" on \"files\"");
}

#[test]
fn clones_are_the_same_flight() {
    let flight = Flight::new();
    let wire = flight.clone();

    assert!(wire.queued());
    assert!(flight.withdraw());

    assert!(!wire.sending());
}

#[test]
fn a_clone_of_a_context_carries_no_flight() {
    let mut context = CallContext::tracked();
    context.set_flight(Flight::new());

    let clone = context.clone();

    assert!(clone.is_tracked());
    assert!(clone.flight().is_none());
    assert!(context.take_flight().is_some());
}

#[test]
fn a_flight_whose_request_was_cloned_is_not_the_only_attempt() {
    let flight = Flight::new();
    let mut context = CallContext::tracked();
    context.set_flight(flight.clone());
    assert!(flight.is_sole());

    let _retry = context.clone();

    assert!(!flight.is_sole());
}

#[test]
fn a_wire_may_clone_its_request_once_it_took_the_flight() {
    let mut context = CallContext::tracked();
    context.set_flight(Flight::new());

    let flight = context.take_flight().unwrap();
    let _copy = context.clone();

    assert!(flight.is_sole());
}

/// A flight in this stage, marked at once.
fn brought_to(stage: Stage) -> Flight {
    let flight = Flight::new();
    if stage >= Stage::Queued {
        assert!(flight.queued());
    }
    match stage {
        Stage::Withdrawn => assert!(flight.withdraw()),
        Stage::Sent | Stage::Answered => assert!(flight.sending()),
        _ => {}
    }
    if stage == Stage::Answered {
        flight.answered();
    }
    flight
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_hold_is_a_sign_of_life() {
    let flight = Flight::new();
    assert!(flight.queued() && flight.sending());
    let (first, second) = (flight.hold(), flight.hold());
    tokio::time::advance(Duration::from_secs(1)).await;

    drop(first);
    assert!(flight.is_held(), "the other one holds it still");
    tokio::time::advance(Duration::from_secs(1)).await;
    let now = Instant::now();
    drop(second);

    assert!(!flight.is_held());
    assert_eq!(flight.stage(), (Stage::Sent, now));
}
