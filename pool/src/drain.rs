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
    /// How many connections ended as they should, in time.
    pub drained: usize,
    /// Those that had to be killed: they heeded neither the end of their input nor
    /// `SIGTERM`, or the time was up.
    pub forced: Vec<Forced>,
    /// How long it took.
    pub took: Duration,
}

/// A connection that a drain had to kill.
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
    let live: Vec<_> = stations.iter().filter(|station| is_live(station)).collect();
    let calls = join_all(stations.iter().map(|station| station.calls_done()));
    let _ = timeout_at(begun + deadline.mul_f64(0.5), calls).await;

    let by = begun + deadline.mul_f64(1.0 - FOR_KILLING);
    for station in &stations {
        station.shut(Shut::Drained, Some(by));
    }
    let vacant = join_all(stations.iter().map(|station| station.vacant()));
    let _ = timeout_at(begun + deadline, vacant).await;

    force(shared, &stations);
    let killed = live.iter().filter(|station| station.was_killed());
    let forced: Vec<_> = killed.map(|station| Forced::from(&***station)).collect();
    DrainReport {
        drained: live.len() - forced.len(),
        forced,
        took: begun.elapsed(),
    }
}

fn is_live(station: &Station) -> bool {
    station.phase() != Phase::Vacant
}

/// Kills what is left when the time is up.
fn force(shared: &Shared, stations: &[Arc<Station>]) {
    let left: Vec<_> = stations.iter().filter(|station| is_live(station)).collect();
    for station in &left {
        station.abort();
    }
    if !left.is_empty() {
        shared.connector().kill_all();
    }
}

// === impl Forced ===

impl From<&Station> for Forced {
    fn from(station: &Station) -> Self {
        Self {
            server: Arc::clone(station.key().name()),
            entry_index: station.view().index,
        }
    }
}
