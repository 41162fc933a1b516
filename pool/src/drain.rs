//! The end of a pool.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use crate::{
    entry::{Phase, Shut, Station},
    pool::Shared,
};

/// How much of a drain's time is kept for killing what does not end by itself.
const FOR_KILLING: f64 = 0.1;

/// How a pool was drained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// How many connections ended in time, by themselves or step by step.
    pub drained: usize,
    /// Those that did not, and were killed when the time was up.
    pub forced: Vec<Forced>,
    /// How long it took.
    pub took: Duration,
}

/// A connection that had to be killed when the time of a drain was up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forced {
    /// The server.
    pub server: Arc<str>,
    /// The entry's number.
    pub entry_index: Option<u32>,
}

/// Ends every connection of `shared` within `deadline`.
pub(crate) async fn run(shared: &Shared, deadline: Duration) -> DrainReport {
    let begun = Instant::now();
    let stations = shared.stations();
    let live = stations
        .iter()
        .filter(|station| station.phase() != Phase::Vacant)
        .count();
    let calls = join_all(stations.iter().map(|station| station.calls_done()));
    let _ = timeout_at(begun + deadline.mul_f64(0.5), calls).await;

    let by = begun + deadline.mul_f64(1.0 - FOR_KILLING);
    for station in &stations {
        station.shut(Shut::Drained, Some(by));
    }
    let vacant = join_all(stations.iter().map(|station| station.vacant()));
    let _ = timeout_at(begun + deadline, vacant).await;

    let forced = force(shared, &stations);
    DrainReport {
        drained: live.saturating_sub(forced.len()),
        forced,
        took: begun.elapsed(),
    }
}

fn force(shared: &Shared, stations: &[Arc<Station>]) -> Vec<Forced> {
    let left: Vec<_> = stations
        .iter()
        .filter(|station| station.phase() != Phase::Vacant)
        .collect();
    let forced = left
        .iter()
        .map(|station| Forced {
            server: Arc::clone(station.key().name()),
            entry_index: station.view().index,
        })
        .collect();
    for station in &left {
        station.abort();
    }
    if !left.is_empty() {
        shared.connector().kill_all();
    }
    forced
}
