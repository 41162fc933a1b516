//! What pool, sessions, leases and the tasks of connections share.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steadfast_classify::Failure;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use crate::{
    Connect, DrainReport, Host, Key, PoolSettings, ServerConfig,
    entry::{Era, Lingering, Station},
    error::{Refused, refused},
    events::Events,
    process::Grace,
    seat::Scope,
    slots::Slots,
    time::bounded,
};

/// What pool, sessions, leases and the tasks of connections share.
///
/// Locks are taken in this order: a session's seats, these stations, one station; and
/// below that slots and indices, which take no other.
pub(crate) struct Shared {
    settings: PoolSettings,
    connector: Arc<dyn Connect>,
    starting: Semaphore,
    lingering: Arc<Lingering>,
    slots: Arc<Slots>,
    events: Events,
    stations: Mutex<Stations>,
    next_index: Mutex<HashMap<Arc<str>, u32>>,
    drained: watch::Sender<Drained>,
}

#[derive(Default)]
struct Stations {
    by_key: HashMap<Key, Arc<Station>>,
    /// How many were left by those who held or owned them since they were last looked through.
    left: usize,
    /// When that was.
    tidied: Option<Instant>,
    draining: bool,
}

/// How far the drain of a pool is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Drained {
    #[default]
    No,
    Running,
    Done(DrainReport),
}

/// What nobody needs is forgotten after this long at the latest, if anybody comes or goes.
const TIDY_EVERY: Duration = Duration::from_secs(60);

// === impl Shared ===

impl Shared {
    pub(crate) fn new(settings: PoolSettings, connector: Arc<dyn Connect>) -> Self {
        let events = Events::new();
        Self {
            starting: Semaphore::new(settings.max_starting.get().min(Semaphore::MAX_PERMITS)),
            lingering: Lingering::new(),
            slots: Slots::new(settings.slots, events.clone()),
            connector,
            settings,
            events,
            stations: Mutex::default(),
            next_index: Mutex::default(),
            drained: watch::Sender::default(),
        }
    }

    pub(crate) const fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub(crate) fn connector(&self) -> &dyn Connect {
        &*self.connector
    }

    pub(crate) const fn starting(&self) -> &Semaphore {
        &self.starting
    }

    pub(crate) const fn lingering(&self) -> &Arc<Lingering> {
        &self.lingering
    }

    pub(crate) const fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    pub(crate) const fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) const fn drained(&self) -> &watch::Sender<Drained> {
        &self.drained
    }

    /// How long the end of a connection may take, with something to spare.
    pub(crate) fn closing_bound(&self) -> Duration {
        let Grace { eof, term, kill } = self.settings.closing;
        let steps = eof.saturating_add(term).saturating_add(kill);
        bounded(steps).saturating_add(Duration::from_secs(2))
    }

    /// The station for `config`, with one more holder.
    pub(crate) fn attach(
        self: &Arc<Self>,
        config: &ServerConfig,
        scope: &Arc<Scope>,
        isolation: Option<&str>,
    ) -> Result<(Arc<Station>, Era), Failure> {
        let shared = config.is_shared(self.settings.shared);
        let key = if shared {
            Key::new(config, isolation)
        } else {
            Key::private(config, scope.number())
        };
        let mut stations = self.stations();
        if stations.draining {
            return Err(refused(Refused::Draining));
        }
        // One that is nobody's makes room for one with what the newcomer says.
        if let Some(station) = stations.by_key.get(&key).filter(|known| !known.is_over()) {
            return Ok((Arc::clone(station), station.attach()));
        }
        let _forgotten = stations.tidy();
        let sole = (!shared).then(|| Arc::clone(scope));
        let host = Host::new(config.name(), self.settings.roots.clone(), sole);
        let rules = self.settings.rules(config.family(), !shared);
        let station = Station::new(config, rules, host, Arc::clone(self));
        let station = Arc::new(station);
        let era = station.attach();
        stations.by_key.insert(key, Arc::clone(&station));
        Ok((station, era))
    }

    /// Somebody left a station that has no connection any more: what it holds, a
    /// configuration with its secrets and long lists, is forgotten soon.
    pub(crate) fn left_one(&self) {
        let mut stations = self.stations();
        stations.left += 1;
        let forgotten = stations.tidy();
        drop(stations);
        // Behind the lock: there may be many.
        drop(forgotten);
    }

    pub(crate) fn next_index(&self, name: &Arc<str>) -> u32 {
        let mut next_index = self
            .next_index
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let next = next_index.entry(Arc::clone(name)).or_default();
        let index = *next;
        *next = next.wrapping_add(1);
        index
    }

    pub(crate) fn all(&self) -> Vec<Arc<Station>> {
        self.stations().by_key.values().cloned().collect()
    }

    pub(crate) fn named(&self, name: &str) -> Vec<Arc<Station>> {
        let stations = self.stations();
        let named = stations.by_key.values();
        named
            .filter(|station| **station.name() == *name)
            .cloned()
            .collect()
    }

    /// Nothing is accepted any more, from the moment that this returns.
    pub(crate) fn refuse(&self) {
        self.stations().draining = true;
    }

    /// Kills everything at once, in a runtime or not.
    pub(crate) fn kill_all(&self, stations: &[Arc<Station>]) {
        for station in stations {
            station.kill();
        }
        self.lingering.kill_all();
        self.connector.kill_all();
    }

    /// Refuses everything from now on, and forgets the stations: they point here.
    pub(crate) fn abandon(&self) -> Vec<Arc<Station>> {
        let mut stations = self.stations();
        stations.draining = true;
        let by_key = std::mem::take(&mut stations.by_key);
        by_key.into_values().collect()
    }

    fn stations(&self) -> MutexGuard<'_, Stations> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}

// === impl Stations ===

impl Stations {
    /// Forgets stations that nobody needs, whenever half of them may be such: so it costs
    /// nothing to speak of, however many there are.
    fn tidy(&mut self) -> Vec<Arc<Station>> {
        let now = Instant::now();
        let long_ago = |tidied| now.saturating_duration_since(tidied) >= TIDY_EVERY;
        let due = self.left > self.by_key.len() / 2 || self.tidied.is_none_or(long_ago);
        // In a drained pool they still say why nothing is started.
        if !due || self.draining {
            return Vec::new();
        }
        (self.left, self.tidied) = (0, Some(now));
        let over = self.by_key.extract_if(|_, station| station.is_over());
        let over = over.map(|(_, station)| station).collect();
        self.by_key.shrink_to(2 * self.by_key.len());
        over
    }
}
