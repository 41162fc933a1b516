//! Every interleaving of a few calls on the word of one circuit.
//!
//! `RUSTFLAGS='--cfg steadfast_loom' cargo test -p steadfast-circuit-breaker --test loom
//! --release -- --nocapture` also prints how many there were.
#![cfg(steadfast_loom)]
#![allow(dead_code, reason = "the word as it is, of which a test uses a part")]

#[path = "../src/bits.rs"]
mod bits;
#[path = "../src/pass.rs"]
mod pass;
#[path = "../src/sync.rs"]
mod sync;
#[path = "../src/time.rs"]
mod time;
#[path = "../src/word.rs"]
mod word;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use loom::{model::Builder, sync::Arc, thread};

use self::{
    bits::{Bits, Step, View, Weight},
    pass::Pass,
    time::Time,
    word::{Admission, Word},
};

const OPEN_FOR: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(90);

/// The word, and every change of its state in the order in which they happened.
struct Circuit {
    word: Word,
    /// Not a mutex of loom's: noting a change is no step of the model.
    turns: Mutex<Vec<(Bits, Bits)>>,
}

// === impl Circuit ===

impl Circuit {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: Word::new(),
            turns: Mutex::new(Vec::new()),
        })
    }

    /// One that has opened, at second 0, and waits for its probe from second 30 on.
    fn opened() -> Arc<Self> {
        let circuit = Self::new();
        circuit.fail(circuit.pass(0), 0, 1);
        circuit
    }

    fn turn(&self, from: Bits, to: Bits) -> bool {
        let swapped = self.word.swap(from, to);
        if swapped {
            self.turns.lock().unwrap().push((from, to));
        }
        swapped
    }

    fn admit(&self, at: u64) -> Admission {
        let now = || seconds(at);
        self.word.admit(now, LEASE, |from, to| self.turn(from, to))
    }

    /// A call that is let through.
    fn pass(&self, at: u64) -> Pass {
        passed(self.admit(at)).expect("it passes")
    }

    fn succeed(&self, pass: Pass, at: u64, probes: u32) {
        if !self.word.load().is_at_rest() {
            self.apply(|bits| bits.succeed(pass, probes, || seconds(at)));
        }
    }

    fn fail(&self, pass: Pass, at: u64, threshold: u32) {
        let weight = Weight {
            threshold: Some(threshold),
            exceeded: false,
            healthy_after: Duration::from_secs(60),
        };
        self.apply(|bits| bits.fail(pass, weight, seconds(at), |_| OPEN_FOR));
    }

    fn release(&self, pass: Pass) {
        self.apply(|bits| bits.release(pass));
    }

    fn apply(&self, step: impl Fn(Bits) -> Step) -> bool {
        let turn = |from, to| self.turn(from, to);
        self.word.apply(step, turn).is_some()
    }

    fn view(&self) -> View {
        self.word.load().view()
    }

    /// Each change came out of the one before it, and took the next generation.
    fn turns(&self) -> usize {
        let turns = self.turns.lock().unwrap();
        for (n, (from, to)) in turns.iter().enumerate() {
            assert_eq!(from.generation() as usize, n);
            assert_eq!(to.generation() as usize, n + 1);
        }
        assert_eq!(self.word.load().generation() as usize, turns.len());
        turns.len()
    }
}

fn seconds(at: u64) -> Time {
    Time::since_epoch(Duration::from_secs(at))
}

fn passed(admission: Admission) -> Option<Pass> {
    match admission {
        Admission::Pass(pass) | Admission::Probe { pass, .. } => Some(pass),
        Admission::Shut { .. } | Admission::Retired => None,
    }
}

/// Runs all interleavings: however often one thread interrupts another.
fn every(name: &str, model: impl Fn() + Sync + Send + 'static) {
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&runs);
    let mut builder = Builder::new();
    builder.preemption_bound = None;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let runs = runs.load(Ordering::Relaxed);
    println!("{name}: {runs} interleavings, no bound on preemptions");
}

/// Does something with the circuit in another thread.
fn beside<T: 'static>(
    circuit: &Arc<Circuit>,
    act: impl FnOnce(&Circuit) -> T + 'static,
) -> thread::JoinHandle<T> {
    let circuit = Arc::clone(circuit);
    thread::spawn(move || act(&circuit))
}

#[test]
fn a_success_from_before_a_trip_changes_nothing_after_it() {
    every("stale success", || {
        let circuit = Circuit::new();
        let (good, bad) = (circuit.pass(0), circuit.pass(0));

        let other = beside(&circuit, move |circuit| circuit.succeed(good, 0, 1));
        circuit.fail(bad, 0, 1);
        other.join().unwrap();

        assert!(matches!(circuit.view(), View::Open { .. }));
        assert_eq!(circuit.turns(), 1);
    });
}

#[test]
fn no_failure_is_lost_and_one_of_them_opens() {
    every("three failures", || {
        let circuit = Circuit::new();
        let [one, two, three] = [(); 3].map(|()| circuit.pass(0));
        circuit.fail(circuit.pass(0), 0, 4);

        let others =
            [one, two].map(|pass| beside(&circuit, move |circuit| circuit.fail(pass, 0, 4)));
        circuit.fail(three, 0, 4);
        for other in others {
            other.join().unwrap();
        }

        assert!(matches!(circuit.view(), View::Open { .. }));
        assert_eq!((circuit.turns(), circuit.word.load().trips()), (1, 1));
    });
}

#[test]
fn a_success_ends_a_run_or_comes_before_it() {
    every("success in a run", || {
        let circuit = Circuit::new();
        circuit.fail(circuit.pass(0), 0, 9);
        let (good, bad) = (circuit.pass(0), circuit.pass(0));

        let other = beside(&circuit, move |circuit| circuit.succeed(good, 0, 1));
        circuit.fail(bad, 0, 9);
        other.join().unwrap();

        let View::Closed { failures, .. } = circuit.view() else {
            panic!("not closed");
        };
        assert!(failures == 0 || failures == 1, "{failures}");
    });
}

#[test]
fn one_of_three_calls_is_the_probe() {
    every("three ask at the end of the open time", || {
        let circuit = Circuit::opened();

        let others = [(); 2].map(|()| beside(&circuit, |circuit| circuit.admit(30)));
        let here = circuit.admit(30);
        let [one, two] = others.map(|other| other.join().unwrap());

        let probes = [here, one, two].into_iter().filter_map(passed).count();
        assert_eq!(probes, 1);
        assert_eq!(circuit.turns(), 2);
    });
}

#[test]
fn a_late_probe_and_its_successor_decide_once() {
    every("late success, successor fails", || {
        let circuit = Circuit::opened();
        let late = circuit.pass(30);

        let other = beside(&circuit, move |circuit| circuit.succeed(late, 200, 1));
        let next = passed(circuit.admit(200));
        if let Some(next) = next {
            circuit.fail(next, 200, 1);
        }
        other.join().unwrap();

        // The successor was let through in the closed circuit, in the half-open one, or not
        // at all; whoever came first decided.
        let state = circuit.view();
        match circuit.turns() {
            3 => assert!(!matches!(state, View::HalfOpen { .. }), "{state:?}"),
            4 => assert!(matches!(state, View::Open { .. }), "{state:?}"),
            turns => panic!("{turns} turns"),
        }
    });
}

#[test]
fn a_late_probe_that_leaves_does_not_give_away_its_successors_place() {
    every("late release, successor, a third", || {
        let circuit = Circuit::opened();
        let late = circuit.pass(30);

        let leaves = beside(&circuit, move |circuit| circuit.release(late));
        let asks = beside(&circuit, |circuit| circuit.admit(200));
        let here = circuit.admit(200);
        leaves.join().unwrap();
        let there = asks.join().unwrap();

        let probes = [here, there].into_iter().filter_map(passed).count();
        assert_eq!(probes, 1);
        assert!(matches!(circuit.admit(200), Admission::Shut { .. }));
    });
}

#[test]
fn a_probe_that_leaves_makes_room_for_exactly_one() {
    every("release and one who asks, then another", || {
        let circuit = Circuit::opened();
        let probe = circuit.pass(30);

        let asks = beside(&circuit, |circuit| circuit.admit(31));
        circuit.release(probe);
        let first = passed(asks.join().unwrap());
        let second = passed(circuit.admit(31));

        assert!(first.is_some() != second.is_some());
    });
}

#[test]
fn two_probes_that_end_at_once_are_both_counted() {
    every("two successes of two", || {
        let circuit = Circuit::opened();
        let late = circuit.pass(30);
        let next = circuit.pass(200);

        let other = beside(&circuit, move |circuit| circuit.succeed(late, 200, 2));
        circuit.succeed(next, 200, 2);
        other.join().unwrap();

        assert!(matches!(circuit.view(), View::Closed { failures: 0, .. }));
        assert_eq!(circuit.turns(), 3);
    });
}

#[test]
fn nothing_that_ends_undoes_an_isolation() {
    every("isolate, a probe ends, another asks", || {
        let circuit = Circuit::opened();
        let probe = circuit.pass(30);

        let ends = beside(&circuit, move |circuit| circuit.succeed(probe, 31, 1));
        let asks = beside(&circuit, |circuit| circuit.admit(200));
        assert!(circuit.apply(Bits::isolate));
        ends.join().unwrap();
        asks.join().unwrap();

        assert_eq!(circuit.view(), View::Isolated);
    });
}

#[test]
fn a_reset_circuit_knows_nothing_of_what_ends_then() {
    every("reset and a failure that opens", || {
        let circuit = Circuit::new();
        let bad = circuit.pass(0);

        let other = beside(&circuit, move |circuit| circuit.fail(bad, 0, 1));
        circuit.apply(Bits::reset);
        other.join().unwrap();

        let new = View::Closed {
            failures: 0,
            since: 0,
        };
        assert_eq!((circuit.view(), circuit.word.load().trips()), (new, 0));
    });
}

#[test]
fn one_that_opens_is_not_evicted_and_one_evicted_does_not_open() {
    every("retire, a failure that opens, another asks", || {
        let circuit = Circuit::new();
        let bad = circuit.pass(0);

        let fails = beside(&circuit, move |circuit| circuit.fail(bad, 0, 1));
        let asks = beside(&circuit, |circuit| circuit.admit(0));
        let retired = circuit.apply(|bits| bits.retire(seconds(0), false));
        fails.join().unwrap();
        asks.join().unwrap();

        match circuit.view() {
            View::Retired => assert!(retired),
            View::Open { .. } => assert!(!retired),
            view => panic!("{view:?}"),
        }
        assert_eq!(circuit.turns(), 1);
    });
}

#[test]
fn one_whose_probe_is_out_is_not_evicted_and_one_evicted_has_no_probe() {
    every(
        "retire an overdue one, a call that could be its probe",
        || {
            let circuit = Circuit::opened();

            let asks = beside(&circuit, |circuit| circuit.admit(30));
            let retired = circuit.apply(|bits| bits.retire(seconds(30), true));
            let admitted = asks.join().unwrap();

            match admitted {
                Admission::Retired => assert!(retired),
                Admission::Probe { .. } => assert!(!retired),
                admitted => panic!("{admitted:?}"),
            }
        },
    );
}
