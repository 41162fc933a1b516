//! The pool.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use steadfast_classify::Failure;
use tokio::{
    sync::{OnceCell, Semaphore},
    time::Instant,
};

use crate::{
    Connect, InvalidPoolSettings, Key, PoolSettings, ServerConfig, Session, Snapshot, StdioConnect,
    drain::{self, DrainReport},
    entry::{Phase, Shut, Station},
    error::{Refused, refused},
    process::Grace,
    seat::Scope,
    slots::Slots,
};

/// Connections to MCP servers, shared by many sessions.
///
/// A cheap handle: clones are the same pool. When the last clone is dropped without
/// [`drain_all`](Self::drain_all), every server that is left is killed at once; sessions
/// and leases do not keep a pool alive.
///
/// ```no_run
/// use steadfast_pool::{ConfigFile, Pool, PoolSettings};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let servers = ConfigFile::load("mcp.json").into_servers()?;
/// let pool = Pool::new(PoolSettings::default())?;
/// let session = pool.session("agent-1");
/// let lease = session.acquire(&servers[0]).await?;
/// println!("{} tools", lease.tools().tools.len());
/// pool.drain_all(std::time::Duration::from_secs(10)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// Kills what is left when the last handle goes.
struct Owner(Arc<Shared>);

/// What pool, sessions, leases and the tasks of connections share.
pub(crate) struct Shared {
    settings: PoolSettings,
    connector: Arc<dyn Connect>,
    starting: Semaphore,
    slots: Arc<Slots>,
    state: Mutex<State>,
    drained: OnceCell<DrainReport>,
}

#[derive(Default)]
struct State {
    stations: HashMap<Key, Arc<Station>>,
    next_index: HashMap<Arc<str>, u32>,
    draining: bool,
}

/// How one entry was restarted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Restart {
    /// The entry's number; the same before and after.
    pub entry_index: Option<u32>,
    /// Whether its tools are usable again.
    pub restarted: bool,
    /// How long it took.
    pub took: Duration,
    /// Why it was not restarted.
    pub reason: Option<Failure>,
}

// === impl Pool ===

impl Pool {
    /// A pool of servers that are programs. It connects nothing; what servers inherit of
    /// the environment is fixed here.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error names it and what is allowed.
    pub fn new(settings: PoolSettings) -> Result<Self, InvalidPoolSettings> {
        let connector = StdioConnect::new(settings.closing);
        Self::with_connector(settings, connector)
    }

    /// A pool of connections that `connector` makes.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_connector(
        settings: PoolSettings,
        connector: impl Connect,
    ) -> Result<Self, InvalidPoolSettings> {
        settings.check()?;
        Ok(Self(Arc::new(Owner(Arc::new(Shared {
            starting: Semaphore::new(settings.max_starting.get()),
            slots: Slots::new(settings.slots),
            connector: Arc::new(connector),
            settings,
            state: Mutex::default(),
            drained: OnceCell::new(),
        })))))
    }

    /// Opens a session. The name is for logs and for caches that keep sessions apart; two
    /// sessions of one name are two sessions.
    #[must_use]
    pub fn session(&self, id: impl Into<Arc<str>>) -> Session {
        Session::new(id.into(), Arc::clone(&self.0.0))
    }

    /// What the pool holds now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let shared = &self.0.0;
        let mut snapshot = Snapshot {
            slots: shared.slots.count(),
            ..Snapshot::default()
        };
        for station in shared.stations() {
            let view = station.view();
            if view.phase != Phase::Vacant || view.refs > 0 || view.last_error.is_some() {
                let local = station.config().family() == crate::Family::Stdio;
                snapshot.add(station.key().name(), local, view);
            }
        }
        snapshot.sort();
        snapshot
    }

    /// Restarts every connected entry of a server, or the one with this number. An
    /// unknown name gives an empty list.
    ///
    /// The old connection ends before the new one begins, and the calls on it end with
    /// it. Sessions keep their leases. An entry counts as restarted once its tools are
    /// listed anew, which is when they are usable in every session that holds it.
    pub async fn restart(&self, name: &str, index: Option<u32>) -> Vec<Restart> {
        let stations = self.0.0.stations();
        let chosen = stations.into_iter().filter(|station| {
            let view = station.view();
            &**station.key().name() == name
                && matches!(view.phase, Phase::Active { .. })
                && (index.is_none() || view.index == index)
        });
        let restarts = chosen.map(async |station| {
            let entry_index = station.view().index;
            let begun = Instant::now();
            let result = station.restart().await;
            Restart {
                entry_index,
                restarted: result.is_ok(),
                took: begun.elapsed(),
                reason: result.err(),
            }
        });
        join_all(restarts).await
    }

    /// Takes a server out of the pool: its connections end, and calls on leases of it are
    /// rejected. A later session may ask for it anew.
    pub fn retire(&self, name: &str) {
        let mut state = self.0.0.state();
        let (retired, kept) = std::mem::take(&mut state.stations)
            .into_iter()
            .partition(|(key, _)| &**key.name() == name);
        state.stations = kept;
        drop(state);
        let retired: HashMap<Key, Arc<Station>> = retired;
        for station in retired.values() {
            station.shut(Shut::Retired, None);
        }
    }

    /// Ends everything, once and for all, within `deadline`, and says what had to be
    /// killed. Nothing new is accepted from its first moment on.
    ///
    /// Calls that run may finish for half of the time. Then every server's input is
    /// closed, and it is ended step by step; at the end of the time it is killed. Whoever
    /// else asks meanwhile or later gets the same report, of the first one's deadline.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, what was begun goes on, and the next who asks carries on from
    /// there.
    pub async fn drain_all(&self, deadline: Duration) -> DrainReport {
        let shared = &self.0.0;
        shared.state().draining = true;
        shared
            .drained
            .get_or_init(|| drain::run(shared, deadline))
            .await
            .clone()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.snapshot()).finish()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let stations = {
            let mut state = self.0.state();
            state.draining = true;
            std::mem::take(&mut state.stations)
        };
        for station in stations.values() {
            station.shut(Shut::Drained, None);
            station.abort();
        }
        self.0.connector.kill_all();
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) const fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub(crate) fn connector(&self) -> &dyn Connect {
        &*self.connector
    }

    pub(crate) const fn starting(&self) -> &Semaphore {
        &self.starting
    }

    pub(crate) const fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// How long the end of a connection may take, with something to spare.
    pub(crate) fn closing_bound(&self) -> Duration {
        let Grace { eof, term, kill } = self.settings.closing;
        let steps = eof.saturating_add(term).saturating_add(kill);
        steps.saturating_add(Duration::from_secs(2))
    }

    /// The station for `config`, with one more holder.
    pub(crate) fn attach(
        self: &Arc<Self>,
        config: &ServerConfig,
        scope: &Scope,
        isolation: Option<&str>,
    ) -> Result<Arc<Station>, Failure> {
        let shared = config.is_shared(self.settings.shared);
        let key = if shared {
            Key::new(config, isolation)
        } else {
            Key::private(config, scope.number())
        };
        let mut state = self.state();
        if state.draining {
            return Err(refused(Refused::Draining));
        }
        if let Some(station) = state.stations.get(&key) {
            station.attach();
            return Ok(Arc::clone(station));
        }
        state.stations.retain(|_, station| !station.is_over());
        let rules = self.settings.rules(config.family(), !shared);
        let station = Station::new(key.clone(), config.clone(), rules, Arc::clone(self));
        let station = Arc::new(station);
        station.attach();
        state.stations.insert(key, Arc::clone(&station));
        Ok(station)
    }

    pub(crate) fn next_index(&self, name: &Arc<str>) -> u32 {
        let mut state = self.state();
        let next = state.next_index.entry(Arc::clone(name)).or_default();
        let index = *next;
        *next += 1;
        index
    }

    pub(crate) fn stations(&self) -> Vec<Arc<Station>> {
        self.state().stations.values().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("connector", &self.connector)
            .finish_non_exhaustive()
    }
}
