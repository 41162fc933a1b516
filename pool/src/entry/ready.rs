//! Waiting for a connection, and seeing to it that one is made.

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use steadfast_classify::{Class, Failure, Flight, Hold, Phase as CallPhase};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};

use super::{
    making::SLACK,
    owner,
    phase::{Era, Never, Phase, Want},
    state::{Began, State},
    station::Station,
};
use crate::{
    ServerConfig,
    error::{self, NotYet, Refused, refused},
    time::after,
};

/// How long somebody waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience<'a> {
    /// A call: it waits for as long as a start takes, but not for the pause before one.
    /// Whoever makes the call has a limit for it, and can wait for the pause holding
    /// nothing.
    Call(&'a Flight),
    /// An acquire: for the old connection to go, for a pause no longer than its start
    /// limit, and for a start, each in its own time.
    Acquire,
}

/// Somebody who waits, so that a start that nobody waits for is called off.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    station: &'a Arc<Station>,
    config: &'a ServerConfig,
    patience: Patience<'a>,
    era: Era,
    joined: Instant,
    /// The first start whose failure is this one's too.
    awaits: u64,
}

/// What a look at the station gave.
enum Look {
    Ready,
    /// To be looked at again when it turns, or then.
    Again(Option<Instant>),
}

// === impl Station ===

impl Station {
    /// Waits for a usable connection: for the one that is being started, or for the old
    /// one to go; and starts one where there is none. One start serves everyone who waits.
    ///
    /// # Cancel safety
    ///
    /// The start goes on as long as somebody else waits for it, and is called off with
    /// the last.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        era: Era,
        config: &ServerConfig,
        patience: Patience<'_>,
    ) -> Result<(), Failure> {
        let waiter = Waiter::new(self, &mut self.state(), era, config, patience);
        waiter.ready().await?;
        self.check_names(config);
        Ok(())
    }

    fn launch(
        self: &Arc<Self>,
        runtime: &Handle,
        mut state: MutexGuard<'_, State>,
        config: &ServerConfig,
    ) {
        state.start.epoch += 1;
        state.start.began = None;
        state.last_closed = None;
        let epoch = state.start.epoch;
        drop(state);
        // Not under the lock: a runtime that has ended drops the task at once, and that
        // tells the station.
        let owner = owner::run(Arc::clone(self), config.clone());
        let owner = runtime.spawn(owner).abort_handle();
        let mut state = self.state();
        let current = state.start.epoch == epoch && state.machine.phase() != Phase::Vacant;
        state.owner = state.owner.take().or(current.then_some(owner));
    }

    /// What `never` means to somebody.
    pub(super) fn never(&self, never: Never) -> Failure {
        let why = match never {
            Never::Retired => Refused::Retired,
            Never::Drained => Refused::Draining,
        };
        refused(why).with_origin(self.origin())
    }

    fn not_yet(&self, last: Option<Failure>, failed: bool) -> Failure {
        Failure::new(Class::NotSent)
            .with_phase(CallPhase::Connect)
            .with_origin(self.origin())
            .with_source(NotYet { last, failed })
    }
}

// === impl Waiter ===

impl<'a> Waiter<'a> {
    pub(super) fn new(
        station: &'a Arc<Station>,
        state: &mut State,
        era: Era,
        config: &'a ServerConfig,
        patience: Patience<'a>,
    ) -> Self {
        state.machine.wait(era);
        // The start that is under way, or the next one.
        let under_way = state.machine.phase() == Phase::Starting;
        Self {
            station,
            config,
            patience,
            era,
            joined: Instant::now(),
            awaits: state.start.epoch + u64::from(!under_way),
        }
    }

    pub(super) async fn ready(self) -> Result<(), Failure> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(error::no_runtime().with_origin(self.station.origin()));
        };
        let mut turns = self.station.turns();
        loop {
            turns.borrow_and_update();
            let again_at = match self.look(&runtime)? {
                Look::Ready => return Ok(()),
                Look::Again(at) => at,
            };
            let _hold = self.hold();
            // The sender is in the station, so it cannot be gone.
            match again_at {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    _ = turns.changed() => {}
                },
                None => drop(turns.changed().await),
            }
        }
    }

    fn look(&self, runtime: &Handle) -> Result<Look, Failure> {
        let mut state = self.station.state();
        if let Some(failure) = state.failure_since(self.awaits) {
            return Err(failure.clone());
        }
        let now = Instant::now();
        match state.machine.want(self.era, now) {
            Want::Ready => Ok(Look::Ready),
            Want::Start => {
                self.station.launch(runtime, state, self.config);
                Ok(Look::Again(None))
            }
            Want::Wait => match self.bound(&state) {
                Some(bound) if bound <= now => Err(self.waited(&state)),
                bound => Ok(Look::Again(bound)),
            },
            Want::Later(wait) => self.later(&state, now, wait),
            Want::Never(never) => Err(self.station.never(never)),
        }
    }

    /// Many starts at once wait for each other: that is no fault of this server's.
    fn hold(&self) -> Option<Hold> {
        let Patience::Call(flight) = self.patience else {
            return None;
        };
        let state = self.station.state();
        let queues = state.machine.phase() == Phase::Starting && state.start.began.is_none();
        queues.then(|| flight.hold())
    }

    /// When this one has waited for long enough. A call is bounded by whoever makes it.
    fn bound(&self, state: &State) -> Option<Instant> {
        if let Patience::Call(_) = self.patience {
            return None;
        }
        let limit = self.limit();
        if state.machine.phase() != Phase::Starting {
            let closing = self.station.pool().closing_bound();
            return Some(after(self.joined, limit.saturating_add(closing)));
        }
        // Its own time counts from the spawn, not from the queue before it.
        let Began { at, by } = state.start.began?;
        let own = after(self.joined.max(at), limit);
        // Whoever starts it says better what was wrong, a moment later.
        let theirs = after(by, 2 * SLACK);
        Some(if own < by { own } else { theirs })
    }

    fn waited(&self, state: &State) -> Failure {
        let last = state.last_error.clone();
        self.station.not_yet(last, state.machine.is_failed())
    }

    /// When to look again, if waiting for the pause before the next attempt is worth it.
    fn later(&self, state: &State, now: Instant, wait: Duration) -> Result<Look, Failure> {
        let at = after(now, wait);
        match self.patience {
            Patience::Acquire if at <= after(self.joined, self.limit()) => {
                Ok(Look::Again(Some(at)))
            }
            Patience::Call(_) | Patience::Acquire => Err(self.waited(state).with_retry_in(wait)),
        }
    }

    fn limit(&self) -> Duration {
        self.station.start_limit(self.config)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let changed = self.station.state().machine.unwait(self.era);
        if changed {
            self.station.turned();
        }
    }
}
