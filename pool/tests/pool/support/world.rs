//! The servers that there are, and what became of them.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt, panic,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use steadfast_classify::{Class, Failure};
use steadfast_pool::{Connect, Host, Key, Link, ServerConfig};
use tokio::time::{self, Instant};

use super::link::FakeLink;

/// Servers as a test wants them. Clones are the same world.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Inner>);

#[derive(Debug, Default)]
pub(crate) struct Inner {
    state: Mutex<State>,
    next_link: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    plans: HashMap<String, Plan>,
    links: Vec<Arc<FakeLink>>,
    starts: Vec<(String, Instant)>,
    alive: HashMap<Key, usize>,
    /// How often calls with these tags were executed.
    executed: HashMap<u64, usize>,
    connecting: usize,
    most_connecting: usize,
    killed_all: bool,
    /// What must never happen and did.
    violations: Vec<String>,
}

/// How a server behaves from now on.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How long a start takes.
    pub(crate) start: Duration,
    /// How the next starts go; good ones after that.
    pub(crate) starts: VecDeque<Connecting>,
    /// What the next lists of tools are; the last one for ever.
    pub(crate) lists: VecDeque<Listing>,
    /// How long a list of tools takes.
    pub(crate) list: Duration,
    /// How long a close takes, unless there is less time: then it has to be killed.
    pub(crate) close: Duration,
    /// A close that does not end by itself, whatever the time.
    pub(crate) close_hangs: bool,
    /// Whether calls wait in a queue and are not sent.
    pub(crate) stuck: bool,
    /// Whether calls do not end with their connection.
    pub(crate) deaf: bool,
    /// Whether it promised to tell when its tools change.
    pub(crate) announces: bool,
    /// Whether it answers no ping, and no further list.
    pub(crate) mute: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Connecting {
    Good,
    Slow(Duration),
    Fails(Failure),
    Hangs,
    Panics,
}

#[derive(Clone, Debug)]
pub(crate) enum Listing {
    Tools(Vec<&'static str>),
    Fails,
    /// An answer that is no list.
    Garbled,
    Hangs,
    /// The connection is lost while it lists, but the answer still comes.
    Dies,
}

/// Something of a server that lives, be it a connection or the start of one.
#[derive(Debug)]
pub(crate) struct Alive {
    world: World,
    key: Key,
}

/// A start that is under way.
struct Turn(World);

// === impl World ===

impl World {
    /// Changes how `server` behaves from now on.
    pub(crate) fn plan(&self, server: &str, change: impl FnOnce(&mut Plan)) {
        change(self.state().plans.entry(server.to_owned()).or_default());
    }

    pub(crate) fn of(&self, server: &str) -> Plan {
        let plan = self.state().plans.get(server).cloned();
        plan.unwrap_or_default()
    }

    /// When starts of `server` began.
    pub(crate) fn starts(&self, server: &str) -> Vec<Instant> {
        let state = self.state();
        let starts = state.starts.iter().filter(|(name, _)| name == server);
        starts.map(|(_, at)| *at).collect()
    }

    /// All connections that `server` ever had.
    pub(crate) fn links(&self, server: &str) -> Vec<Arc<FakeLink>> {
        let state = self.state();
        let links = state.links.iter().filter(|link| link.server() == server);
        links.cloned().collect()
    }

    pub(crate) fn last(&self, server: &str) -> Arc<FakeLink> {
        self.links(server).pop().expect("it was connected")
    }

    /// How much of any server lives: connections and starts.
    pub(crate) fn alive(&self) -> usize {
        self.state().alive.values().sum()
    }

    /// The servers of which something lives.
    pub(crate) fn alive_names(&self) -> BTreeSet<String> {
        let state = self.state();
        let alive = state.alive.iter().filter(|(_, alive)| **alive > 0);
        alive.map(|(key, _)| key.name().to_string()).collect()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    pub(super) fn execute(&self, tag: u64) {
        *self.state().executed.entry(tag).or_default() += 1;
    }

    /// How often the call with this tag was executed.
    pub(crate) fn executed(&self, tag: u64) -> usize {
        self.state().executed.get(&tag).copied().unwrap_or(0)
    }

    /// Lets go of everything: its connections point back here.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        let links = std::mem::take(&mut state.links);
        (state.starts, state.executed) = Default::default();
        state.alive.retain(|_, alive| *alive > 0);
        state.alive.shrink_to_fit();
        drop(state);
        drop(links);
    }

    /// How many starts were under way at once, at most.
    pub(crate) fn most_connecting(&self) -> usize {
        self.state().most_connecting
    }

    pub(crate) fn killed_all(&self) -> bool {
        self.state().killed_all
    }

    #[track_caller]
    pub(crate) fn check(&self) {
        let violations = self.violations();
        assert!(violations.is_empty(), "{violations:?}");
    }

    pub(crate) fn next_listing(&self, server: &str) -> Listing {
        let mut state = self.state();
        let plan = state.plans.entry(server.to_owned()).or_default();
        if plan.lists.len() > 1 {
            plan.lists.pop_front().expect("there are several")
        } else {
            plan.lists.front().cloned().unwrap_or_default()
        }
    }

    fn next_start(&self, server: &str) -> (Connecting, Duration) {
        let mut state = self.state();
        state.starts.push((server.to_owned(), Instant::now()));
        let plan = state.plans.entry(server.to_owned()).or_default();
        let start = plan.starts.pop_front().unwrap_or(Connecting::Good);
        (start, plan.start)
    }

    fn live(&self, key: Key) -> Alive {
        let mut state = self.state();
        let alive = state.alive.entry(key.clone()).or_default();
        *alive += 1;
        if *alive > 1 {
            let what = format!("{alive} connections at once for {key:?}");
            state.violations.push(what);
        }
        drop(state);
        Alive {
            world: self.clone(),
            key,
        }
    }

    async fn start(self, config: ServerConfig) -> Result<Arc<dyn Link>, Failure> {
        // Each session has its own of what is not shared: nothing to be counted there.
        let number = self.0.next_link.fetch_add(1, Ordering::Relaxed);
        let key = if config.is_shared(Default::default()) {
            Key::new(&config, None)
        } else {
            Key::new(&config, Some(&number.to_string()))
        };
        let alive = self.live(key);
        let _turn = Turn::new(self.clone());
        let name = config.name().to_string();
        let (how, delay) = self.next_start(&name);
        time::sleep(delay).await;
        match how {
            Connecting::Good => {}
            Connecting::Slow(longer) => time::sleep(longer).await,
            Connecting::Fails(failure) => return Err(failure),
            Connecting::Hangs => std::future::pending().await,
            // Without the noise of the panic hook.
            Connecting::Panics => panic::resume_unwind(Box::new("a connector that panics")),
        }
        let link = Arc::new(FakeLink::new(number, name, self.clone(), alive));
        self.state().links.push(Arc::clone(&link));
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no test panics under it")
    }
}

impl Connect for World {
    fn connect(
        &self,
        config: &ServerConfig,
        _deadline: Instant,
        _host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        self.clone().start(config.clone()).boxed()
    }

    /// Only remembers it: the pool has to kill each connection by itself as well.
    fn kill_all(&self) {
        self.state().killed_all = true;
    }
}

// === impl Plan ===

impl Default for Plan {
    fn default() -> Self {
        Self {
            start: Duration::ZERO,
            starts: VecDeque::new(),
            lists: VecDeque::new(),
            list: Duration::ZERO,
            close: Duration::ZERO,
            close_hangs: false,
            stuck: false,
            deaf: false,
            announces: false,
            mute: false,
        }
    }
}

// === impl Connecting ===

impl Connecting {
    /// A start that fails as when a server ends at once.
    pub(crate) fn fails() -> Self {
        Self::Fails(Failure::new(Class::NotSent).with_source("it ended at once"))
    }

    /// A start that fails for good, as when there is no such program.
    pub(crate) fn missing() -> Self {
        let failure = Failure::new(Class::NotSent).with_source("no such program");
        Self::Fails(failure.with_permanent())
    }
}

// === impl Listing ===

impl Default for Listing {
    fn default() -> Self {
        Self::Tools(vec!["r", "w", "i"])
    }
}

// === impl Alive ===

impl Drop for Alive {
    fn drop(&mut self) {
        let mut state = self.world.state();
        if let Some(alive) = state.alive.get_mut(&self.key) {
            *alive -= 1;
        }
    }
}

// === impl Turn ===

impl Turn {
    fn new(world: World) -> Self {
        {
            let mut state = world.state();
            state.connecting += 1;
            state.most_connecting = state.most_connecting.max(state.connecting);
        }
        Self(world)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.state().connecting -= 1;
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}
