//! The wire sends while the caller gives up: exactly one of them may win.
#![cfg(not(steadfast_loom))]

use std::{
    hint,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use steadfast_classify::{Flight, Stage};

const BATCHES: usize = 100;
const ROUNDS: usize = 10_000;

#[test]
fn a_flight_is_sent_or_withdrawn_and_never_both() {
    let mut sent = 0;
    for _ in 0..BATCHES {
        let flights: Vec<Flight> = (0..ROUNDS).map(|_| claimed()).collect();

        let (sendings, withdrawals) = race(&flights, Flight::sending, Flight::withdraw);

        for (round, flight) in flights.iter().enumerate() {
            let (sending, withdrawn) = (sendings[round], withdrawals[round]);
            assert_ne!(sending, withdrawn, "round {round}: {flight:?}");
            let (want, at) = if sending {
                (Stage::Sent, true)
            } else {
                (Stage::Withdrawn, false)
            };
            assert_eq!(flight.stage().0, want, "round {round}");
            assert_eq!(flight.sent_at().is_some(), at, "round {round}");
        }
        sent += sendings.iter().filter(|sending| **sending).count();
    }
    println!("{sent} of {} were sent", BATCHES * ROUNDS);
}

#[test]
fn progress_never_undoes_an_answer() {
    let flights: Vec<Flight> = (0..ROUNDS).map(|_| claimed()).collect();
    for flight in &flights {
        assert!(flight.sending());
    }

    race(&flights, Flight::progress, Flight::answered);

    for (round, flight) in flights.iter().enumerate() {
        assert_eq!(flight.stage().0, Stage::Answered, "round {round}");
    }
}

fn claimed() -> Flight {
    let flight = Flight::new();
    assert!(flight.queued());
    flight
}

/// Does one thing to each flight on one thread and the other on another, flight by
/// flight at the same moment.
fn race<A: Send, B: Send>(
    flights: &[Flight],
    one: fn(&Flight) -> A,
    other: fn(&Flight) -> B,
) -> (Vec<A>, Vec<B>) {
    let here = AtomicUsize::new(0);
    let there = AtomicUsize::new(0);
    thread::scope(|scope| {
        let ones = scope.spawn(|| run(flights, one, &here, &there));
        let others = run(flights, other, &there, &here);
        (ones.join().expect("no mark panics"), others)
    })
}

fn run<T>(
    flights: &[Flight],
    act: fn(&Flight) -> T,
    mine: &AtomicUsize,
    theirs: &AtomicUsize,
) -> Vec<T> {
    flights
        .iter()
        .enumerate()
        .map(|(round, flight)| {
            mine.store(round + 1, Ordering::Release);
            let mut spins = 0_u32;
            while theirs.load(Ordering::Acquire) <= round {
                spins += 1;
                // On one core the other side only comes when this one steps back.
                if spins.is_multiple_of(64) {
                    thread::yield_now();
                }
                hint::spin_loop();
            }
            act(flight)
        })
        .collect()
}
