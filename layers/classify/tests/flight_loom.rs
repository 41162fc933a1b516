//! Every interleaving of the marks of two threads.
//!
//! `RUSTFLAGS="--cfg steadfast_loom" cargo test -p steadfast-classify --test flight_loom`
#![cfg(steadfast_loom)]

use loom::thread;
use steadfast_classify::{Flight, Stage};

#[test]
fn a_claimed_flight_is_sent_or_withdrawn_and_never_both() {
    loom::model(|| {
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
    loom::model(|| {
        let flight = Flight::new();
        let caller = flight.clone();

        let withdrawing = thread::spawn(move || caller.withdraw());
        let sent = flight.queued() && flight.sending();

        // Withdrawn between claim and sending, or not at all.
        assert_ne!(sent, withdrawing.join().unwrap());
    });
}

#[test]
fn who_reads_sent_finds_the_time_of_sending() {
    loom::model(|| {
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
    loom::model(|| {
        let flight = Flight::new();
        assert!(flight.sending());
        let wire = flight.clone();

        let progress = thread::spawn(move || wire.progress());
        flight.answered();

        progress.join().unwrap();
        assert_eq!(flight.stage().0, Stage::Answered);
    });
}
