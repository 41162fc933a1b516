//! The pool.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::join_all;
use steadfast_classify::Failure;
use tokio::{sync::broadcast, time::Instant};

use crate::{
    AnyConnect, Connect, DrainReport, Family, InvalidPoolSettings, PoolEvent, PoolSettings,
    Session, SlotsView, Snapshot, drain, entry::Station, shared::Shared, time::after,
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
    /// A pool of servers of every kind that this build has a connector for
    /// ([`AnyConnect`]). It connects nothing; what programs inherit of the environment is
    /// fixed here.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error names it and what is allowed.
    pub fn new(settings: PoolSettings) -> Result<Self, InvalidPoolSettings> {
        let connector = AnyConnect::new(settings.closing);
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
        let shared = Shared::new(settings, Arc::new(connector));
        Ok(Self(Arc::new(Owner(Arc::new(shared)))))
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
        let mut snapshot = Snapshot {
            slots: self.shared().slots().snapshot(),
            ..Snapshot::default()
        };
        for station in self.shared().all() {
            if let Some(view) = station.view() {
                let local = station.family() == Family::Stdio;
                snapshot.add(station.name(), local, view);
            }
        }
        snapshot.sort();
        snapshot
    }

    /// Who has the slots now, and who was refused one.
    #[must_use]
    pub fn slots(&self) -> SlotsView {
        self.shared().slots().view()
    }

    /// What happens in the pool from now on. The buffer is bounded: a receiver that does
    /// not keep up is told how many events it missed.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<PoolEvent> {
        self.shared().events().subscribe()
    }

    /// Restarts every entry of a server, or the one with this number. An unknown name
    /// gives an empty list.
    ///
    /// Restarted is what is connected, and what a session holds after its connection was
    /// lost or could not be made, whatever pause is due. One that is just being started is
    /// waited for. The old connection ends before the new one begins, and the calls on it
    /// end with it. Sessions keep their leases. An entry counts as restarted once its tools
    /// are listed anew, which is when they are usable in every session that holds it.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the old connections are ended all the same, and the next call makes
    /// a new one.
    pub async fn restart(&self, name: &str, index: Option<u32>) -> Vec<Restart> {
        let named = self.shared().named(name);
        let chosen = named
            .iter()
            .filter(|station| index.is_none() || station.index() == index);
        let mut restarts: Vec<_> = join_all(chosen.map(restart))
            .await
            .into_iter()
            .flatten()
            .collect();
        restarts.sort_by_key(|restart| restart.entry_index);
        restarts
    }

    /// Takes a server out of the pool. Calls that run may finish, for one
    /// [`grace`](PoolSettings::grace) at most, then its connections end; new calls on
    /// leases of it are rejected at once.
    ///
    /// Who asks for the server from now on gets a new connection, once the old one is gone.
    pub fn retire(&self, name: &str) {
        let until = after(Instant::now(), self.shared().settings().grace);
        for station in self.shared().named(name) {
            station.retire(until);
        }
    }

    /// Ends everything, once and for all, within `deadline`, and says what had to be
    /// killed. Nothing new is accepted from its first moment on: no session's server, and
    /// no call.
    ///
    /// Starts are called off. Calls that run may finish for half of the time. Then every
    /// server's input is closed, and it is ended step by step, so that all are gone well
    /// before the time is up; what is not is killed. Whoever else asks meanwhile or later
    /// gets the same report, of the first one's deadline.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, it goes on; whoever asks next gets its report.
    pub async fn drain_all(&self, deadline: Duration) -> DrainReport {
        drain::all(self.shared(), deadline).await
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }
}

async fn restart(station: &Arc<Station>) -> Option<Restart> {
    let entry_index = station.index();
    let begun = Instant::now();
    let result = station.restart().await?;
    Some(Restart {
        // One that had none has one now, if it was being started.
        entry_index: entry_index.or_else(|| station.index()),
        restarted: result.is_ok(),
        took: begun.elapsed(),
        reason: result.err(),
    })
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.snapshot()).finish()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let now = Instant::now();
        let stations = self.0.abandon();
        for station in &stations {
            station.drain(now, now);
        }
        // All servers at once, which is quicker than one after the other; then whatever a
        // connector does not know of.
        self.0.connector().kill_all();
        self.0.kill_all(&stations);
    }
}
