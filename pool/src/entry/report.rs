//! What its owner tells a station.

use std::{sync::Arc, time::Duration};

use steadfast_classify::{Class, Failure, Phase as CallPhase};
use tokio::time::Instant;

use super::{
    phase::{Phase, Why},
    state::{Began, Connection, Failed, State},
    station::Station,
};
use crate::{
    Closed, Link, Lost,
    events::{DetachReason, Events},
    observe::{self, Entry},
    view::Listed,
};

// === impl Station ===

impl Station {
    /// A start had its turn. Whoever makes it gives up at `by`.
    pub(super) fn began(&self, at: Instant, by: Instant) {
        self.turn(|state| state.start.began = Some(Began { at, by }));
    }

    /// Whether there is a list of tools, be it an old one.
    pub(super) fn has_tools(&self) -> bool {
        self.state().catalog.tools.generation > 0
    }

    /// A connection was made. `None`: it was called off in the last moment.
    pub(super) fn started(&self, link: &Arc<dyn Link>, listed: Listed) -> Option<Entry> {
        let mut state = self.state();
        let now = Instant::now();
        if !state.machine.started(now) {
            return None;
        }
        let restarted = std::mem::take(&mut state.restarting);
        let index = match state.index.filter(|_| restarted) {
            Some(index) => index,
            None => self.pool().next_index(self.name()),
        };
        state.index = Some(index);
        state.connection = Some(Connection::new(Arc::clone(link)));
        state.last_error = listed.failure().cloned();
        state.catalog = Arc::new(state.catalog.refreshed(listed));
        state.outdated = false;
        let catalog = Arc::clone(&state.catalog);
        let took = state.start.began.map_or(Duration::ZERO, |b| now - b.at);
        drop(state);
        self.turned();
        self.settle();
        let entry = self.entry(index);
        observe::connected(self.events(), &entry, link.pid(), restarted, took);
        for (list, flaws) in catalog.flaws() {
            observe::flawed(self.events(), &entry, list, flaws);
        }
        Some(entry)
    }

    /// The server said that its lists are others.
    pub(super) fn outdated(&self) {
        self.state().outdated = true;
    }

    /// Lists of this very connection: its owner drops the asking with the connection.
    pub(super) fn refreshed(&self, entry: &Entry, listed: Listed) {
        let stale = listed.failure().cloned();
        let (before, now) = {
            let mut state = self.state();
            let now = Arc::new(state.catalog.refreshed(listed));
            let before = std::mem::replace(&mut state.catalog, Arc::clone(&now));
            state.outdated = false;
            (before, now)
        };
        observe::lists_changed(self.events(), entry, stale.as_ref());
        for ((_, before), (list, flaws)) in before.flaws().into_iter().zip(now.flaws()) {
            if before != flaws {
                observe::flawed(self.events(), entry, list, flaws);
            }
        }
    }

    /// Nothing came of a start, and nothing is left of it.
    pub(super) fn start_failed(&self, failure: Failure, counted: bool) {
        let failure = failure.with_origin(self.origin());
        self.turn(|state| {
            let retry_after = failure.retry_after();
            state.machine.failed(Instant::now(), counted, retry_after);
            state.fail(failure.clone());
        });
        observe::start_failed(self.events(), self.name(), &failure);
    }

    /// The connection ended by itself. `true` if the calls on it may finish.
    pub(super) fn lost(&self, entry: &Entry, lost: &Lost) -> bool {
        let superseded = {
            let mut state = self.state();
            // Somebody ends it already, and its calls with it.
            let active = matches!(state.machine.phase(), Phase::Active { .. });
            state.machine.lost(Instant::now());
            state.last_error = Some(
                Failure::new(Class::Unknown)
                    .with_origin(self.origin())
                    .with_source(lost.clone()),
            );
            active && lost.superseded
        };
        observe::failed(self.events(), entry, lost);
        superseded
    }

    /// The connection is of no use to anybody any more. Returns how long its end may take.
    pub(super) fn detached(&self, entry: &Entry) -> Duration {
        let (reason, within) = self.turn(|state| {
            state.sever();
            let now = Instant::now();
            let within = state.close_by.map(|by| by.saturating_duration_since(now));
            (reason(state.machine.phase()), within)
        });
        match reason {
            // It was lost, or makes room for another: tasks live on.
            DetachReason::Failed | DetachReason::Restart => {}
            _ => self.leave_all_tasks(),
        }
        observe::detached(self.events(), entry, reason);
        within.unwrap_or(Duration::MAX)
    }

    /// The connection takes no new calls; those on it may finish, and it is closed within
    /// `limit` after them. For the key it is gone.
    pub(super) fn superseded(&self, entry: &Entry, limit: Duration) {
        let connection = self.turn(|state| state.connection.take());
        if let Some(connection) = connection {
            self.pool().lingering().keep(connection, limit);
        }
        observe::detached(self.events(), entry, DetachReason::Failed);
    }

    /// The old connection, or what was being started, is proven gone.
    pub(super) fn closed(&self, gone: Option<(&Entry, Closed)>) {
        let connection = self.turn(|state| {
            state.machine.closed();
            state.owner = None;
            state.last_closed = gone.map(|(_, closed)| closed);
            state.connection.take()
        });
        drop(connection);
        if let Some((entry, closed)) = gone {
            observe::closed(self.events(), entry, closed);
        }
    }

    /// The owner ended without a word: its task was killed, or panicked, or went down with
    /// its runtime.
    pub(super) fn vanished(&self, entry: Option<&Entry>) {
        let lost = Lost::new("the task of the connection was ended");
        let failure = Failure::new(Class::NotSent)
            .with_phase(CallPhase::Connect)
            .with_origin(self.origin())
            .with_source(lost.clone());
        let closed = Closed::unproven(Duration::ZERO);
        let (before, connection) = self.turn(|state| {
            let before = state.machine.phase();
            state.sever();
            state.machine.vanished(Instant::now());
            state.fail(failure);
            state.last_closed = Some(closed);
            (before, state.connection.take())
        });
        drop(connection);
        let Some(entry) = entry else { return };
        if let Phase::Active { .. } | Phase::Leaving { .. } = before {
            observe::failed(self.events(), entry, &lost);
            observe::detached(self.events(), entry, DetachReason::Failed);
        }
        observe::closed(self.events(), entry, closed);
    }

    fn entry(&self, index: u32) -> Entry {
        Entry {
            server: Arc::clone(self.name()),
            index,
        }
    }

    fn events(&self) -> &Events {
        self.pool().events()
    }
}

// === impl State ===

impl State {
    /// Those who waited for the start that is under way get its failure.
    fn fail(&mut self, failure: Failure) {
        self.owner = None;
        self.restarting = false;
        self.last_error = Some(failure.clone());
        self.failed = Some(Failed {
            epoch: self.start.epoch,
            failure,
        });
    }
}

const fn reason(phase: Phase) -> DetachReason {
    match phase {
        Phase::Closing(Why::Idle) => DetachReason::Idle,
        Phase::Closing(Why::Restart) => DetachReason::Restart,
        Phase::Closing(Why::Retired) => DetachReason::Retired,
        Phase::Closing(Why::Drained) => DetachReason::Drained,
        Phase::Closing(Why::Lost | Why::Abandoned)
        | Phase::Vacant
        | Phase::Starting
        | Phase::Active { .. }
        | Phase::Leaving { .. } => DetachReason::Failed,
    }
}
