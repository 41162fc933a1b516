//! The one task that owns a connection, from its start to its proven end.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::FutureExt as _;
use steadfast_classify::{Class, Failure};
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    keepalive,
    listing::{News, Told},
    making::{SLACK, connect, discover},
    phase::{Phase, Why},
    station::Station,
};
use crate::{
    Closed, Link, ServerConfig, observe::Entry, slots::SlotsFull, time::after, view::Listed,
};

/// How long the end of a server may take that nobody could use yet.
const HURRY: Duration = Duration::from_millis(500);

/// Owns a connection. However its task ends, by a panic in a connector or with the runtime,
/// the station knows that there is no connection any more.
struct Owner {
    station: Arc<Station>,
    link: Option<Arc<dyn Link>>,
    /// Once sessions have it.
    entry: Option<Entry>,
    done: bool,
}

/// How making a connection went.
enum Made {
    Connected(Arc<dyn Link>, Listed),
    Failed(Failure),
    CalledOff,
}

/// How keeping a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// It is to be closed.
    Over,
    /// Another is to be made, and the calls on it may finish.
    Superseded,
}

/// Starts a connection, keeps it while it is needed, and ends it.
pub(super) fn run(
    station: Arc<Station>,
    config: ServerConfig,
) -> impl Future<Output = ()> + Send + 'static {
    // Made here: a runtime that ends may drop the task before its first step.
    let owner = Owner {
        station,
        link: None,
        entry: None,
        done: false,
    };
    own(owner, config)
}

async fn own(mut owner: Owner, config: ServerConfig) {
    let pool = Arc::clone(owner.station.pool());
    let slot = match pool.slots().reserve(owner.station.name()) {
        Ok(slot) => slot,
        Err(full) => return owner.start_failed(over_slots(full), false),
    };
    // Free when the process is proven dead, and before anybody hears of it.
    match owner.make(&config).await {
        Made::Failed(failure) => {
            drop(slot);
            let counted = !failure.is_permanent() && failure.class() != Class::Rejected;
            owner.start_failed(failure, counted);
        }
        Made::CalledOff => {
            drop(slot);
            owner.closed(None);
        }
        Made::Connected(link, listed) => {
            owner.entry = owner.station.started(&link, listed);
            let within = match &owner.entry {
                Some(entry) => match owner.keep(entry, &link, &config).await {
                    Kept::Superseded => {
                        owner.station.superseded(entry, pool.closing_bound());
                        drop(slot);
                        return owner.closed(Some(Closed::clean()));
                    }
                    Kept::Over => owner.station.detached(entry),
                },
                None => HURRY,
            };
            let closed = owner.end(link, within).await;
            drop(slot);
            owner.closed(Some(closed));
        }
    }
}

// === impl Kept ===

impl Kept {
    const fn after(superseded: bool) -> Self {
        if superseded {
            Self::Superseded
        } else {
            Self::Over
        }
    }
}

// === impl Owner ===

impl Owner {
    /// Connects and asks for the lists, within the start limit counted from the spawn.
    async fn make(&mut self, config: &ServerConfig) -> Made {
        let station = Arc::clone(&self.station);
        let mut called_off = pin!(station.called_off());
        // Many cold starts at once starve each other, so the clock starts behind this.
        let _turn = tokio::select! {
            biased;
            () = &mut called_off => return Made::CalledOff,
            turn = station.pool().starting().acquire() => turn,
        };
        let begun = Instant::now();
        let by = after(begun, station.start_limit(config));
        station.began(begun, by);
        let link = tokio::select! {
            biased;
            // Dropped, it ends what it has started.
            () = &mut called_off => return Made::CalledOff,
            connected = connect(&station, config, begun, by) => match connected {
                Ok(link) => link,
                Err(failure) => return Made::Failed(failure),
            },
        };
        // From here on it is ended with the owner.
        self.link = Some(Arc::clone(&link));
        let listed = tokio::select! {
            biased;
            () = &mut called_off => None,
            listed = discover(&station, &link, begun, by) => Some(listed),
        };
        let ended = match listed {
            Some(Ok(listed)) => return Made::Connected(link, listed),
            Some(Err(failure)) => Made::Failed(failure),
            None => Made::CalledOff,
        };
        self.end(link, HURRY).await;
        ended
    }

    /// Returns once the connection is to be closed, for whatever reason.
    async fn keep(&self, entry: &Entry, link: &Arc<dyn Link>, config: &ServerConfig) -> Kept {
        let station = &self.station;
        let mut lost = Arc::clone(link).lost();
        let mut news = News::new(link, station.start_limit(config));
        let mut silence = pin!(keepalive::silence(station, link).fuse());
        loop {
            let deadline = match station.tick() {
                Ok(deadline) => deadline,
                Err(_closing) => return Kept::Over,
            };
            tokio::select! {
                lost = &mut lost => return Kept::after(station.lost(entry, &lost)),
                lost = &mut silence => return Kept::after(station.lost(entry, &lost)),
                () = station.nudged() => {}
                () = at(deadline) => {}
                told = news.next() => match told {
                    Told::Outdated => station.outdated(),
                    Told::Listed(listed) => station.refreshed(entry, listed),
                },
            }
        }
    }

    /// A connection whose end does not end is killed and counts as gone: a key is not
    /// blocked for ever.
    async fn end(&mut self, link: Arc<dyn Link>, within: Duration) -> Closed {
        let begun = Instant::now();
        let bound = self.station.pool().closing_bound();
        let within = within.min(bound.saturating_sub(SLACK));
        let closing = Arc::clone(&link).close(within);
        match timeout(within + SLACK, closing).await {
            Ok(closed) => closed,
            Err(_) => {
                link.kill();
                Closed::unproven(begun.elapsed())
            }
        }
    }

    fn start_failed(mut self, failure: Failure, counted: bool) {
        self.done = true;
        self.link = None;
        self.station.start_failed(failure, counted);
        self.station.left();
    }

    fn closed(mut self, closed: Option<Closed>) {
        self.done = true;
        self.link = None;
        self.station.closed(self.entry.as_ref().zip(closed));
        self.station.left();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let Some(link) = self.link.take() {
            link.kill();
        }
        self.station.vanished(self.entry.as_ref());
        self.station.left();
    }
}

/// Never, where there is no deadline.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

// === impl Station ===

impl Station {
    /// Resolves when a start is not wanted any more.
    async fn called_off(&self) {
        while self.phase() == Phase::Starting {
            self.nudged().await;
        }
    }

    /// Closes what is due to be closed; else says when to look again.
    fn tick(&self) -> Result<Option<Instant>, Why> {
        let mut state = self.state();
        state.machine.tick(Instant::now());
        match state.machine.phase() {
            Phase::Closing(why) => Err(why),
            Phase::Vacant | Phase::Starting | Phase::Active { .. } | Phase::Leaving { .. } => {
                Ok(state.machine.deadline())
            }
        }
    }
}

fn over_slots(full: SlotsFull) -> Failure {
    Failure::new(Class::Rejected)
        .with_layer("pool")
        .with_source(full)
}
