//! Every interleaving of the marks of two threads.
//!
//! `RUSTFLAGS='--cfg steadfast_loom' cargo test -p steadfast-classify --test flight_loom
//! --release -- --nocapture` also prints how many there were.
#![cfg(steadfast_loom)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use loom::{model::Builder, thread};
use steadfast_classify::{Flight, Stage};

#[test]
fn a_claimed_flight_is_sent_or_withdrawn_and_never_both() {
    model("sending and a withdrawal", || {
        let flight = Flight::new();
        assert!(flight.queued());
        let wire = flight.clone();

        let sending = thread::spawn(move || wire.sending());
        let withdrawn = flight.withdraw();

        let sent = sending.join().unwrap();
        assert_ne!(sent, withdrawn);
        assert_eq!(flight.sent_at().is_some(), sent);
    });
}

#[test]
fn a_withdrawal_that_comes_before_the_claim_proves_nothing() {
    model("claim and sending, and a withdrawal", || {
        let flight = Flight::new();
        let caller = flight.clone();

        let withdrawing = thread::spawn(move || caller.withdraw());
        let sent = flight.queued() && flight.sending();

        // Withdrawn between claim and sending, or not at all.
        assert_ne!(sent, withdrawing.join().unwrap());
    });
}

#[test]
fn of_two_who_give_up_one_alone_has_the_proof() {
    model("sending and two withdrawals", || {
        let flight = Flight::new();
        assert!(flight.queued());
        let (caller, pool) = (flight.clone(), flight.clone());

        let by_caller = thread::spawn(move || caller.withdraw());
        let by_pool = thread::spawn(move || pool.withdraw());
        let sent = flight.sending();

        let outcomes = [sent, by_caller.join().unwrap(), by_pool.join().unwrap()];
        let won = outcomes.into_iter().filter(|outcome| *outcome).count();
        assert_eq!(won, 1, "{outcomes:?}");
    });
}

#[test]
fn who_reads_sent_finds_the_time_of_sending() {
    model("sending and progress, and a reader", || {
        let flight = Flight::new();
        assert!(flight.queued());
        let reader = flight.clone();

        let reading = thread::spawn(move || {
            if reader.stage().0 == Stage::Sent {
                assert!(reader.sent_at().is_some());
            }
        });
        assert!(flight.sending());
        flight.progress();

        reading.join().unwrap();
    });
}

#[test]
fn progress_never_undoes_an_answer() {
    model("progress and an answer", || {
        let flight = Flight::new();
        assert!(flight.sending());
        let wire = flight.clone();

        let progress = thread::spawn(move || wire.progress());
        flight.answered();

        progress.join().unwrap();
        assert_eq!(flight.stage().0, Stage::Answered);
    });
}

/// Goes through all interleavings, says how many there were, and sees to it that the
/// threads could get into each other's way at all.
fn model(name: &str, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    // Not what the environment says: every interleaving is the claim.
    builder.preemption_bound = None;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);

    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        check();
    });

    let count = count.load(Ordering::Relaxed);
    println!("{name}: {count} interleavings, no bound on preemptions");
    assert!(count > 1);
}
