//! The end of a pool.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

use crate::{
    entry::{Phase, Station},
    observe,
    shared::{Drained, Shared},
    time::{after, bounded},
};

/// The share of a drain's time after which calls that still run are cut off.
const CALLS: f64 = 0.5;

/// The share after which the last server has been killed by its own steps.
const STEPS: f64 = 0.85;

/// The share after which what is left all the same is killed by whatever means.
const FORCE: f64 = 0.95;

/// How long it may take to hear that what was killed is gone, if the time is up.
const MOMENT: Duration = Duration::from_millis(100);

/// How a pool was drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// How many connections ended without being killed.
    pub drained: usize,
    /// Those that had to be killed.
    pub forced: Vec<Forced>,
    /// How long it took.
    pub took: Duration,
}

/// A connection that had to be killed in a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forced {
    /// The server.
    pub server: Arc<str>,
    /// The entry's number; `None` if it was never usable.
    pub entry_index: Option<u32>,
    /// How many of its processes could not be proven dead; `None` if that could not be
    /// found out.
    pub survivors: Option<usize>,
}

/// Says so when a drain ends without having been finished, so that somebody else can.
struct Unfinished(Arc<Shared>);

/// Drains `shared`, or waits for whoever does.
pub(crate) async fn all(shared: &Arc<Shared>, deadline: Duration) -> DrainReport {
    shared.refuse();
    let mut drained = shared.drained().subscribe();
    loop {
        if let Drained::Done(report) = &*drained.borrow_and_update() {
            return report.clone();
        }
        if begin(shared) {
            let Ok(runtime) = Handle::try_current() else {
                return at_once(shared);
            };
            // Made here: a runtime that ends may drop the task before its first step.
            let unfinished = Unfinished(Arc::clone(shared));
            runtime.spawn(run(unfinished, deadline));
            // Dropped already: the runtime has ended, and there is no other here.
            let dropped = matches!(*shared.drained().borrow(), Drained::No);
            if dropped {
                return at_once(shared);
            }
        }
        // The sender is in `shared`.
        drop(drained.changed().await);
    }
}

/// `true` for the one who is to do it.
fn begin(shared: &Shared) -> bool {
    shared.drained().send_if_modified(|drained| {
        let first = matches!(drained, Drained::No);
        if first {
            *drained = Drained::Running;
        }
        first
    })
}

/// A task of its own, so that it goes on when nobody waits for it any more.
async fn run(unfinished: Unfinished, deadline: Duration) {
    let shared = Arc::clone(&unfinished.0);
    let begun = Instant::now();
    let share = |share| after(begun, bounded(deadline).mul_f64(share));
    let stations = shared.all();
    let live: Vec<_> = stations.iter().filter(|station| lives(station)).collect();
    for station in &stations {
        station.drain(share(CALLS), share(STEPS));
    }
    let vacant = || join_all(live.iter().map(|station| station.vacant()));
    let lingering = async {
        let lingering = shared.lingering();
        let _ = timeout_at(share(CALLS), lingering.gone()).await;
        lingering.cut();
        lingering.gone().await;
    };
    let gone = async { tokio::join!(vacant(), lingering) };
    if timeout_at(share(FORCE), gone).await.is_err() {
        let left: Vec<_> = live
            .iter()
            .map(|&station| Arc::clone(station))
            .filter(lives)
            .collect();
        shared.kill_all(&left);
        // Dead already; only their tasks have yet to be told.
        let told = share(1.0).max(Instant::now() + MOMENT);
        let _ = timeout_at(told, vacant()).await;
    }
    let forced: Vec<_> = live.iter().filter_map(|station| forced(station)).collect();
    finish(&shared, live.len(), forced, begun);
}

/// Without a runtime nothing can be waited for.
fn at_once(shared: &Shared) -> DrainReport {
    let begun = Instant::now();
    let stations = shared.all();
    let live: Vec<_> = stations.into_iter().filter(lives).collect();
    for station in &live {
        station.drain(begun, begun);
    }
    shared.kill_all(&live);
    let forced: Vec<_> = live.iter().filter_map(forced).collect();
    finish(shared, live.len(), forced, begun)
}

fn finish(shared: &Shared, live: usize, forced: Vec<Forced>, begun: Instant) -> DrainReport {
    let report = DrainReport {
        drained: live.saturating_sub(forced.len()),
        forced,
        took: begun.elapsed(),
    };
    let events = shared.events();
    observe::drained(events, report.drained, report.forced.len(), report.took);
    shared.drained().send_replace(Drained::Done(report.clone()));
    report
}

fn lives(station: &Arc<Station>) -> bool {
    station.phase() != Phase::Vacant
}

/// What had to be killed, if it had to be.
fn forced(station: &Arc<Station>) -> Option<Forced> {
    let gone = !lives(station);
    let survivors = match station.last_closed() {
        Some(closed) if gone && !closed.killed => return None,
        Some(closed) if gone => closed.survivors,
        // A start that was called off: it has ended with that.
        None if gone => return None,
        Some(_) | None => None,
    };
    Some(Forced {
        server: Arc::clone(station.name()),
        entry_index: station.index(),
        survivors,
    })
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.drained().send_if_modified(|drained| {
            let running = matches!(drained, Drained::Running);
            if running {
                *drained = Drained::No;
            }
            running
        });
    }
}
