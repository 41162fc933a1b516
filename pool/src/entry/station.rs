//! One key's place in the pool.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};

use steadfast_classify::{Class, Failure, Origin, Phase as CallPhase};
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::{Instant, sleep_until, timeout_at},
};

use super::{
    machine::{Phase, Rules, Shut, Want, Why},
    owner,
    state::State,
    tools::ToolList,
};
use crate::{
    Key, Link, ServerConfig,
    error::{self, NotYet},
    pool::Shared,
};

/// One key's place in the pool. It outlives its connections: seats point here, and a lost
/// connection is replaced behind them.
#[derive(Debug)]
pub(crate) struct Station {
    key: Key,
    config: ServerConfig,
    origin: Origin,
    start_timeout: Duration,
    pool: Arc<Shared>,
    state: Mutex<State>,
    version: watch::Sender<u64>,
    running: AtomicUsize,
    no_calls: Notify,
    in_flight: Option<Semaphore>,
}

/// How long somebody waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// A call: it waits for a start, but not for the pause before one. Whoever called it
    /// can wait for that holding nothing.
    Call,
    /// Until then, pauses included.
    Until(Instant),
}

/// Counts somebody who waits, so that a start that nobody waits for is called off.
struct Waiter<'a>(&'a Station);

/// Counts a call that runs.
pub(crate) struct RunningCall<'a>(&'a Station);

// === impl Station ===

impl Station {
    pub(crate) fn new(key: Key, config: ServerConfig, rules: Rules, pool: Arc<Shared>) -> Self {
        let family = config.family();
        let settings = pool.settings();
        let start_timeout = config
            .discovery_timeout()
            .unwrap_or_else(|| settings.start_timeout(family));
        let max_in_flight = config
            .max_in_flight()
            .and_then(|limit| usize::try_from(limit.get()).ok());
        Self {
            origin: Origin::server(Arc::clone(key.name())),
            key,
            start_timeout,
            state: Mutex::new(State::new(rules, Instant::now())),
            version: watch::Sender::new(0),
            running: AtomicUsize::new(0),
            no_calls: Notify::new(),
            in_flight: max_in_flight.map(Semaphore::new),
            config,
            pool,
        }
    }

    pub(crate) const fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) const fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) const fn start_timeout(&self) -> Duration {
        self.start_timeout
    }

    pub(crate) const fn in_flight(&self) -> Option<&Semaphore> {
        self.in_flight.as_ref()
    }

    pub(crate) fn tools(&self) -> Arc<ToolList> {
        Arc::clone(&self.state().tools)
    }

    pub(crate) fn attach(&self) {
        self.state().machine.attach(Instant::now());
        self.changed();
    }

    pub(crate) fn detach(&self) {
        self.state().machine.detach(Instant::now());
        self.changed();
    }

    pub(crate) fn run_call(&self) -> RunningCall<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        RunningCall(self)
    }

    /// The connection, if there is one that can be used at once.
    pub(crate) fn link(&self) -> Option<Arc<dyn Link>> {
        let state = self.state();
        match state.machine.phase() {
            Phase::Active { .. } => state.link.clone(),
            Phase::Vacant | Phase::Starting | Phase::Closing(_) => None,
        }
    }

    /// A usable connection: waits for the one that is being started or for the old one to
    /// go, and starts one where there is none. One start serves everyone who waits.
    ///
    /// # Cancel safety
    ///
    /// The start goes on as long as somebody else waits for it, and is called off with
    /// the last.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        patience: Patience,
    ) -> Result<Arc<dyn Link>, Failure> {
        match patience {
            Patience::Call => self.ready_unbounded(patience).await,
            Patience::Until(deadline) => timeout_at(deadline, self.ready_unbounded(patience))
                .await
                .unwrap_or_else(|_| Err(self.not_yet(None))),
        }
    }

    async fn ready_unbounded(
        self: &Arc<Self>,
        patience: Patience,
    ) -> Result<Arc<dyn Link>, Failure> {
        let mut changes = self.version.subscribe();
        let _waiter = Waiter::new(self);
        let mut awaited = None;
        loop {
            changes.borrow_and_update();
            let again_at = {
                let mut state = self.state();
                if let Some(failure) = awaited.and_then(|epoch| state.failure_since(epoch)) {
                    return Err(failure.clone());
                }
                match state.machine.want(Instant::now()) {
                    Want::Ready => match &state.link {
                        Some(link) => return Ok(Arc::clone(link)),
                        None => None,
                    },
                    Want::Start => {
                        self.launch(&mut state);
                        awaited = Some(state.epoch);
                        None
                    }
                    Want::Wait => {
                        if state.machine.phase() == Phase::Starting {
                            awaited.get_or_insert(state.epoch);
                        }
                        None
                    }
                    Want::Later(wait) => Some(self.later(&state, wait, patience)?),
                    Want::Shut(shut) => return Err(self.shut_failure(shut)),
                }
            };
            match again_at {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    _ = changes.changed() => {}
                },
                // The sender is in this very station.
                None => drop(changes.changed().await),
            }
        }
    }

    /// When to look again, if waiting for the pause before the next attempt is worth it.
    fn later(&self, state: &State, wait: Duration, patience: Patience) -> Result<Instant, Failure> {
        let at = Instant::now() + wait;
        match patience {
            Patience::Until(deadline) if at < deadline => Ok(at),
            Patience::Call | Patience::Until(_) => {
                let last = state.last_error.clone();
                Err(self.not_yet(Some((wait, last, state.machine.is_failed()))))
            }
        }
    }

    fn launch(self: &Arc<Self>, state: &mut State) {
        state.epoch += 1;
        state.killed = false;
        let owner = tokio::spawn(owner::run(Arc::clone(self), Arc::clone(&self.pool)));
        state.owner = Some(owner.abort_handle());
    }

    /// Nothing is started any more, and what there is ends, at the latest at `by`.
    pub(crate) fn shut(&self, shut: Shut, by: Option<Instant>) {
        let mut state = self.state();
        state.machine.shut(shut);
        state.close_by = by.or(state.close_by);
        drop(state);
        self.changed();
    }

    /// Ends the connection and gets a new one, at once. Fails where there is none.
    pub(crate) async fn restart(self: &Arc<Self>) -> Result<(), Failure> {
        let waiter = Waiter::new(self);
        {
            let mut state = self.state();
            state.machine.forgive();
            state.machine.close(Why::Restart);
            state.restarts += 1;
        }
        self.changed();
        let ready = self.ready(Patience::Until(self.patience())).await;
        drop(waiter);
        ready?;
        match &self.tools().stale {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// How long an acquire is worth waiting for: the old connection's end, and a start.
    pub(crate) fn patience(&self) -> Instant {
        let closing = self.pool.closing_bound();
        Instant::now() + self.start_timeout + closing
    }

    /// Resolves when no call runs any more.
    pub(crate) async fn calls_done(&self) {
        loop {
            let mut no_calls = pin!(self.no_calls.notified());
            no_calls.as_mut().enable();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            no_calls.await;
        }
    }

    /// Resolves when nothing is left of any connection.
    pub(crate) async fn vacant(&self) {
        let mut changes = self.version.subscribe();
        while self.phase() != Phase::Vacant {
            drop(changes.changed().await);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().machine.phase()
    }

    /// Whether nobody needs this station any more.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.state();
        state.machine.is_over() && !state.machine.remembers(Instant::now())
    }

    /// Stops the owner wherever it is; what it held ends by being dropped.
    pub(crate) fn abort(&self) {
        let mut state = self.state();
        let owner = state.owner.take();
        state.link = None;
        state.killed = true;
        drop(state);
        if let Some(owner) = owner {
            owner.abort();
        }
    }

    /// Whether its last connection had to be killed.
    pub(crate) fn was_killed(&self) -> bool {
        self.state().killed
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(super) const fn origin(&self) -> &Origin {
        &self.origin
    }

    fn not_yet(&self, pause: Option<(Duration, Option<Failure>, bool)>) -> Failure {
        let failure = Failure::new(Class::NotSent)
            .with_phase(CallPhase::Connect)
            .with_origin(&self.origin);
        match pause {
            Some((wait, last, failed)) => failure
                .with_retry_in(wait)
                .with_source(NotYet::paused(last, failed)),
            None => failure.with_source(NotYet::waited()),
        }
    }

    fn shut_failure(&self, shut: Shut) -> Failure {
        error::shut(shut).with_origin(&self.origin)
    }

    /// For snapshots: index, holders, phase, and what else is of interest.
    pub(crate) fn view(&self) -> crate::snapshot::EntryView {
        let state = self.state();
        crate::snapshot::EntryView {
            index: state.index,
            refs: state.machine.seats(),
            phase: state.machine.phase(),
            failed: state.machine.is_failed(),
            pid: state.link.as_ref().and_then(|link| link.pid()),
            in_flight: self.running.load(Ordering::Acquire),
            restarts: state.restarts,
            last_error: state.last_error.as_ref().map(ToString::to_string),
        }
    }
}

// === impl Waiter ===

impl<'a> Waiter<'a> {
    fn new(station: &'a Station) -> Self {
        station.state().machine.wait();
        Self(station)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.state().machine.unwait();
        self.0.changed();
    }
}

// === impl RunningCall ===

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.no_calls.notify_waiters();
        }
    }
}
