//! One key's place in the pool.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use steadfast_classify::Origin;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    machine::{Machine, Rules},
    phase::{Era, Phase},
    state::State,
};
use crate::{
    Closed, Family, Host, ServerConfig,
    shared::Shared,
    snapshot::EntryView,
    view::{Catalog, Projections},
};

/// One key's place in the pool. It outlives its connections: seats point here, and a lost
/// connection is replaced behind them.
#[derive(Debug)]
pub(crate) struct Station {
    name: Arc<str>,
    /// Of whoever came first.
    config: ServerConfig,
    host: Host,
    origin: Origin,
    pool: Arc<Shared>,
    state: Mutex<State>,
    /// Tells everyone who waits that the phase is another one.
    turns: watch::Sender<u64>,
    /// Tells the owner to look again.
    nudge: Notify,
    places: Option<Arc<Semaphore>>,
    /// How many calls are under way, the waiting ones included.
    under_way: AtomicUsize,
    projections: Projections,
}

// === impl Station ===

impl Station {
    pub(crate) fn new(config: &ServerConfig, rules: Rules, host: Host, pool: Arc<Shared>) -> Self {
        let name = Arc::clone(config.name());
        let max_in_flight = config
            .max_in_flight()
            .or_else(|| pool.settings().max_in_flight(config.family()))
            .and_then(|limit| usize::try_from(limit.get()).ok())
            .map(|limit| limit.min(Semaphore::MAX_PERMITS));
        Self {
            origin: Origin::server(Arc::clone(&name)),
            name,
            config: config.clone(),
            host,
            state: Mutex::new(State::new(rules, Instant::now())),
            turns: watch::Sender::new(0),
            nudge: Notify::new(),
            places: max_in_flight.map(|limit| Arc::new(Semaphore::new(limit))),
            under_way: AtomicUsize::new(0),
            projections: Projections::default(),
            pool,
        }
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// What its connections are to the server.
    pub(crate) const fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn family(&self) -> Family {
        self.config.family()
    }

    pub(crate) const fn projections(&self) -> &Projections {
        &self.projections
    }

    /// What the server offers; nothing to somebody who gets no connection any more.
    pub(crate) fn catalog(&self, era: Era) -> Option<Arc<Catalog>> {
        let state = self.state();
        let never = state.machine.never(era);
        never.is_none().then(|| Arc::clone(&state.catalog))
    }

    /// How long a start for somebody with this configuration may take.
    pub(crate) fn start_limit(&self, config: &ServerConfig) -> Duration {
        config
            .discovery_timeout()
            .unwrap_or_else(|| self.pool.settings().start_timeout(self.family()))
    }

    /// One more holder. The owner need not know: it only does something when there is
    /// none any more.
    pub(crate) fn attach(&self) -> Era {
        self.state().machine.attach(Instant::now())
    }

    pub(crate) fn detach(&self, era: Era) {
        if self.state().machine.detach(era, Instant::now()) {
            self.nudge();
            self.left();
        }
    }

    /// To be told whenever somebody has left who may have been the last.
    pub(super) fn left(&self) {
        if self.state().machine.is_over() {
            self.pool.left_one();
        }
    }

    /// Who holds it now has nothing to ask for any more. Their calls that run may finish
    /// until `until`.
    pub(crate) fn retire(&self, until: Instant) {
        self.turn(|state| {
            state.machine.retire(until);
            // Who comes after that gets another entry.
            state.restarting = false;
        });
    }

    /// Nothing is started any more. Calls that run may finish until `until`, and what
    /// there is ends at the latest at `by`.
    pub(crate) fn drain(&self, until: Instant, by: Instant) {
        self.turn(|state| {
            state.machine.drain(until);
            state.close_by = Some(by);
        });
    }

    /// Kills what there is at once, in a runtime or not; what is being started too.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.sever();
        let owner = state.owner.take();
        let connection = state.connection.take();
        drop(state);
        if let Some(connection) = connection {
            connection.link.kill();
        }
        // It tells the machine so when it is dropped.
        if let Some(owner) = owner {
            owner.abort();
        }
    }

    /// Resolves when nothing is left of any connection.
    pub(crate) async fn vacant(&self) {
        let mut turns = self.turns.subscribe();
        while self.phase() != Phase::Vacant {
            // The sender is in this very station.
            drop(turns.changed().await);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().machine.phase()
    }

    /// Whether the station may be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.machine.is_over() && !state.machine.remembers(Instant::now())
    }

    /// How the last connection was closed, if one was.
    pub(crate) fn last_closed(&self) -> Option<Closed> {
        self.state().last_closed
    }

    pub(crate) fn index(&self) -> Option<u32> {
        self.state().index
    }

    /// For snapshots; `None` if there is nothing of interest.
    pub(crate) fn view(&self) -> Option<EntryView> {
        let state = self.state();
        let machine = &state.machine;
        let now = Instant::now();
        let forgotten = machine.is_over() && !machine.remembers(now);
        let connection = state.connection.as_ref();
        (!forgotten).then(|| EntryView {
            index: state.index,
            refs: machine.seats(),
            phase: machine.phase(),
            failed: machine.is_failed(),
            pid: connection.and_then(|connection| connection.link.pid()),
            in_flight: self.under_way.load(Ordering::Relaxed),
            restarts: state.restarts,
            closes_in: idle_for(machine, now),
            last_error: state.last_error.as_ref().map(ToString::to_string),
        })
    }

    pub(super) const fn pool(&self) -> &Arc<Shared> {
        &self.pool
    }

    pub(super) const fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) const fn under_way(&self) -> &AtomicUsize {
        &self.under_way
    }

    pub(super) const fn places(&self) -> Option<&Arc<Semaphore>> {
        self.places.as_ref()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn turns(&self) -> watch::Receiver<u64> {
        self.turns.subscribe()
    }

    /// Changes the phase, and tells everyone who waits, and the owner.
    pub(super) fn turn<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.turned();
        result
    }

    pub(super) fn turned(&self) {
        self.turns.send_modify(|turn| *turn = turn.wrapping_add(1));
        self.nudge();
    }

    pub(super) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Resolves when the owner has something to look at. Only the owner may ask.
    pub(super) async fn nudged(&self) {
        self.nudge.notified().await;
    }
}

/// How long until the connection is closed, if nobody comes.
fn idle_for(machine: &Machine, now: Instant) -> Option<Duration> {
    let deadline = match machine.phase() {
        Phase::Active { .. } => machine.deadline(),
        Phase::Vacant | Phase::Starting | Phase::Leaving { .. } | Phase::Closing(_) => None,
    };
    deadline.map(|deadline| deadline.saturating_duration_since(now))
}
