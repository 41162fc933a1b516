use std::{
    collections::BTreeSet,
    fmt,
    hash::{BuildHasher, RandomState},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tracing::warn;

use super::{
    census::Census,
    sys::{self, Guard},
    table::ProcessTable,
};

/// The variable by which the descendants of a server can be told.
const MARK: &str = "STEADFAST_POOL";

/// A watchdog that dies this often, each time before it was `STEADY`, is not started again.
const MAX_DEATHS: u32 = 5;

const STEADY: Duration = Duration::from_secs(60);

/// Kills the servers if the host is killed: the one death that the host itself cannot handle.
///
/// One tiny `sh` per watchdog, started with the first server. It is told of each process group that
/// comes and goes; when the host has gone it gives the groups that are left a second to end by
/// themselves, a second after `SIGTERM`, and then kills them, and what left them. It runs in a group
/// of its own and ignores the signals of a terminal. If it dies itself it is started again.
///
/// Cheap to clone. It ends with its last clone and the last [`Process`](super::Process) started
/// with it. Without an `sh` there is a warning in the log, and servers run unguarded. On Windows a
/// job object does the same and there is no process.
#[derive(Clone)]
pub struct Watchdog(Arc<Inner>);

pub(super) struct Inner {
    token: String,
    next: AtomicU64,
    census: Census,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    groups: BTreeSet<u32>,
    guard: Option<Guard>,
    since: Option<Instant>,
    deaths: u32,
    given_up: bool,
}

// === impl Watchdog ===

impl Watchdog {
    /// A watchdog for one pool. Starts nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::looking_with(sys::table)
    }

    /// One whose servers are looked for in this table, which takes what [`sys::table`] does.
    pub(crate) fn looking_with(
        table: impl Fn(u64, &[u8]) -> io::Result<ProcessTable> + Send + Sync + 'static,
    ) -> Self {
        // Both numbers are keyed by the system's randomness: nobody gets such a mark by chance.
        let random = || RandomState::new().hash_one(MARK);
        let token = format!("{:016x}{:016x}", random(), random());
        let prefix = pattern(&token);
        Self(Arc::new(Inner {
            token,
            next: AtomicU64::new(0),
            census: Census::new(move |since| table(since, prefix.as_bytes())),
            state: Mutex::default(),
        }))
    }

    /// The pid of the guarding process, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.state().guard.as_ref().and_then(Guard::pid)
    }

    /// Starts the guarding process unless it runs.
    pub(super) fn start(&self) {
        self.0.ensure(&mut self.0.state());
    }

    /// The number that marks one server, never given twice.
    pub(super) fn next_mark(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Name and value of the variable that carries it.
    pub(super) fn variable(&self, mark: u64) -> (&'static str, String) {
        (MARK, format!("{}:{mark}", self.0.token))
    }

    /// Whether both are clones of one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where its servers are looked for when they end.
    pub(super) fn census(&self) -> &Census {
        &self.0.census
    }

    /// From now on the group is killed if the host dies.
    pub(super) fn add(&self, group: u32) {
        let mut state = self.0.state();
        state.groups.insert(group);
        self.0.tell(&mut state, format_args!("+ {group}\n"));
    }

    /// From now on it is not. Must come before the group's leader is reaped.
    pub(super) fn remove(&self, group: u32) {
        let mut state = self.0.state();
        if state.groups.remove(&group) {
            self.0.tell(&mut state, format_args!("- {group}\n"));
        }
    }
}

impl Default for Watchdog {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(self: &Arc<Self>, state: &mut State, line: fmt::Arguments<'_>) {
        let Some(guard) = &mut state.guard else {
            return;
        };
        if let Err(error) = guard.tell(&line.to_string()) {
            warn!(%error, "the watchdog does not listen");
            state.bury();
            self.ensure(state);
        }
    }

    /// Starts the guard unless it runs, and tells it all it has to know.
    fn ensure(self: &Arc<Self>, state: &mut State) {
        if state.guard.as_mut().is_some_and(Guard::is_alive) || state.given_up {
            return;
        }
        if state.guard.is_some() {
            state.bury();
            return self.ensure(state);
        }
        match Guard::start(&pattern(&self.token)).and_then(|guard| self.brief(state, guard)) {
            Ok(guard) => {
                state.since = Some(Instant::now());
                state.guard = Some(guard);
            }
            Err(error) => {
                state.given_up = error.kind() == io::ErrorKind::NotFound;
                warn!(%error, "no watchdog: servers would outlive a killed host");
            }
        }
    }

    fn brief(self: &Arc<Self>, state: &State, mut guard: Guard) -> io::Result<Guard> {
        for group in &state.groups {
            guard.tell(&format!("+ {group}\n"))?;
        }
        let (inner, pid) = (Arc::downgrade(self), guard.pid());
        guard.on_death(move || Self::revive(&inner, pid));
        Ok(guard)
    }

    /// Nobody may notice a dead guard by talking to it for hours, so its end does. `false` while it
    /// lives.
    fn revive(inner: &Weak<Self>, pid: Option<u32>) -> bool {
        let Some(inner) = inner.upgrade() else {
            return true;
        };
        let mut state = inner.state();
        inner.ensure(&mut state);
        state.guard.as_ref().and_then(Guard::pid) != pid
    }
}

/// What the marks of all servers of one watchdog begin with.
fn pattern(token: &str) -> String {
    format!("{MARK}={token}:")
}

// === impl State ===

impl State {
    /// Lets a dead guard go, and gives up on one that dies again and again.
    fn bury(&mut self) {
        if self.guard.take().is_none() {
            return;
        }
        let steady = self
            .since
            .take()
            .is_some_and(|since| since.elapsed() >= STEADY);
        self.deaths = if steady { 1 } else { self.deaths + 1 };
        self.given_up = self.deaths >= MAX_DEATHS;
        warn!(
            deaths = self.deaths,
            given_up = self.given_up,
            "the watchdog died"
        );
    }
}
