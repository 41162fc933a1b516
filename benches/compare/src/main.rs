//! What a call through the stacks of other crates costs next to ours: time and allocations
//! over a service that answers at once and over one that is pending once, on one thread and
//! on two.
//!
//! ```text
//! cargo run --release
//! ```
//!
//! The rounds of all stacks take turns, and the best of each counts, so that a busy machine
//! slows them alike; `-` where two threads never ran at the same time. Where a stack of
//! ours does the same or more, what a peer adds to the bare service is printed as a
//! multiple of what ours adds.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and its set-up cannot fail"
)]

mod allocations;
mod echo;
mod measure;
mod ours;
mod peers;

use std::time::{Duration, Instant};

use tower::Service;

use crate::echo::{Echo, Numbered, Plain, TheirEcho};

const BARE: &str = "bare";
/// How long rounds are repeated.
const RUN_FOR: Duration = Duration::from_secs(30);

/// The four ways in which a stack is measured: is it pending once, on how many threads.
const WAYS: [(bool, usize); 4] = [(false, 1), (false, 2), (true, 1), (true, 2)];

/// A stack and what was measured of it.
struct Subject {
    name: &'static str,
    /// The stack of ours to compare it with.
    ours: Option<&'static str>,
    round: Box<dyn Fn(usize) -> f64>,
    best: [f64; WAYS.len()],
    allocations: [f64; 2],
}

// === impl Subject ===

impl Subject {
    /// `make` makes the stack around an echo that is pending once or is not.
    fn new<R, S>(name: &'static str, make: impl Fn(bool) -> S) -> Self
    where
        S: Service<R> + Clone + Send + 'static,
        R: Numbered,
    {
        let at_once = make(false);
        let pending = make(true);
        Self {
            name,
            ours: None,
            best: [f64::INFINITY; WAYS.len()],
            allocations: [
                measure::allocations(at_once.clone()),
                measure::allocations(pending.clone()),
            ],
            round: Box::new(move |way| {
                let (pending_once, threads) = WAYS[way];
                let service = if pending_once { &pending } else { &at_once };
                measure::nanos(service, threads)
            }),
        }
    }

    fn against(self, ours: &'static str) -> Self {
        Self {
            ours: Some(ours),
            ..self
        }
    }

    fn run(&mut self) {
        for (way, best) in self.best.iter_mut().enumerate() {
            *best = best.min((self.round)(way));
        }
    }
}

fn main() {
    let begun = Instant::now();
    let mut subjects = subjects();
    let mut rounds = 0;
    while begun.elapsed() < RUN_FOR {
        subjects.iter_mut().for_each(Subject::run);
        rounds += 1;
    }
    print(&subjects);
    println!("\nbest of {rounds} rounds, {:.0?} in all", begun.elapsed());
}

fn subjects() -> Vec<Subject> {
    let (breaker, three, full) = (
        "steadfast: breaker",
        "steadfast: retry, breaker, timeout",
        "steadfast: full stack",
    );
    vec![
        Subject::new::<Plain, _>(BARE, TheirEcho::new),
        Subject::new(breaker, |pending| ours::breaker(Echo::new(pending))),
        Subject::new("failsafe: breaker", |pending| {
            peers::failsafe(Echo::new(pending))
        })
        .against(breaker),
        Subject::new("recloser: breaker", |pending| {
            peers::recloser(Echo::new(pending))
        })
        .against(breaker),
        Subject::new("tower-resilience: breaker", |pending| {
            peers::resilience_breaker(Echo::new(pending))
        })
        .against(breaker),
        Subject::new(three, |pending| ours::three(Echo::new(pending))),
        Subject::new("tower: limit, retry, timeout", |pending| {
            peers::tower(Echo::new(pending))
        })
        .against(three),
        Subject::new("tower-resilience: the same three", |pending| {
            peers::resilience(Echo::new(pending))
        })
        .against(three),
        Subject::new(full, |pending| ours::full(Echo::new(pending))),
        Subject::new("tower-resilience: full stack", |pending| {
            peers::resilience_full(Echo::new(pending))
        })
        .against(full),
    ]
}

fn print(subjects: &[Subject]) {
    println!("ns per call: in all, above bare, and that as a multiple of ours\n");
    println!(
        "{:<34} {:>22} {:>22} {:>22} {:>22}  allocations",
        "", "ready, 1 thread", "2 threads", "pending, 1 thread", "2 threads"
    );
    let find = |name| subjects.iter().find(|subject| subject.name == name);
    for subject in subjects {
        print!("{:<34}", subject.name);
        for (way, taken) in subject.best.iter().enumerate() {
            let bare = find(BARE).map_or(0.0, |bare| bare.best[way]);
            let ours = subject.ours.and_then(find).map(|ours| ours.best[way]);
            let ratio = ours.map(|ours| (taken - bare) / (ours - bare));
            print!(
                " {} {} {}",
                cell(Some(*taken), 7, ""),
                cell(Some(taken - bare), 6, ""),
                cell(ratio, 7, "x")
            );
        }
        let [ready, pending] = subject.allocations;
        println!("  {ready:.0}, pending {pending:.0}");
    }
}

/// A number, right-aligned; `-` for one that could not be measured.
fn cell(number: Option<f64>, width: usize, unit: &str) -> String {
    let text = match number {
        None => String::new(),
        Some(number) if !number.is_finite() => "-".to_owned(),
        Some(number) if unit.is_empty() => format!("{number:.0}"),
        Some(number) => format!("{number:.1}{unit}"),
    };
    format!("{text:>width$}")
}
