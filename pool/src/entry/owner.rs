//! The one task that owns a connection, from its start to its proven end.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{FusedFuture as _, OptionFuture},
};
use rmcp::model::Tool;
use steadfast_classify::{Class, Failure, Phase as CallPhase};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tracing::{debug, info, warn};

use super::{
    machine::{Phase, Why},
    state::Failed,
    station::Station,
    tools::ToolList,
};
use crate::{Link, Lost, pool::Shared, slots::SlotsFull};

/// How much longer than its own deadline a connector may take to give up.
const SLACK: Duration = Duration::from_secs(1);

/// How long news of a changed list are collected.
const BURST: Duration = Duration::from_millis(100);

/// Starts a connection, keeps it while it is needed, and ends it.
pub(super) async fn run(station: Arc<Station>, pool: Arc<Shared>) {
    // Held to the very end: a slot is free when the process is proven dead.
    let slot = match pool.slots().reserve(station.key().name()) {
        Ok(slot) => slot,
        Err(full) => return station.start_failed(over_slots(full), false),
    };
    let outcome = tokio::select! {
        biased;
        () = station.called_off() => None,
        outcome = start(&station, &pool) => Some(outcome),
    };
    match outcome {
        // The start was dropped, and has killed what it had started.
        None => station.closed(),
        Some(Err(failure)) => {
            let counted = !failure.is_permanent() && failure.class() != Class::Rejected;
            station.start_failed(failure, counted);
        }
        Some(Ok((link, tools))) => {
            if station.started(&pool, &link, tools) {
                keep(&station, &link).await;
            }
            close(&station, link).await;
        }
    }
    drop(slot);
}

/// Connects and lists the tools, within the start limit counted from the spawn.
async fn start(
    station: &Station,
    pool: &Shared,
) -> Result<(Arc<dyn Link>, Result<Vec<Tool>, Failure>), Failure> {
    // Many cold starts at once starve each other, so the clock starts behind this.
    let _place = pool.starting().acquire().await;
    let limit = station.start_timeout();
    let begun = Instant::now();
    let deadline = begun + limit;
    let connect = pool.connector().connect(station.config(), deadline);
    let link = match timeout_at(deadline + SLACK, connect).await {
        Ok(connected) => connected?,
        Err(_) => return Err(start_timed_out(begun.elapsed())),
    };
    match timeout_at(deadline, Arc::clone(&link).list_tools()).await {
        Ok(tools) => Ok((link, tools)),
        Err(_) => {
            link.close(Duration::ZERO).await;
            Err(start_timed_out(begun.elapsed()))
        }
    }
}

/// Returns once the connection is to be closed, for whatever reason.
async fn keep(station: &Station, link: &Arc<dyn Link>) {
    let mut changes = station.changes();
    let mut lost = Arc::clone(link).lost();
    let mut news = link.tools_changed();
    let mut refresh = OptionFuture::default();
    loop {
        changes.borrow_and_update();
        let deadline = {
            let mut state = station.state();
            state.machine.tick(Instant::now());
            if let Phase::Closing(why) = state.machine.phase() {
                debug!(server = %station.key().name(), ?why, "closing a connection");
                return;
            }
            state.machine.deadline()
        };
        tokio::select! {
            lost = &mut lost => return station.lost(&lost),
            _ = changes.changed() => {}
            () = at(deadline) => {}
            // News during a refresh are seen after it.
            Ok(()) = news.changed(), if refresh.is_terminated() => {
                refresh = Some(list_again(Arc::clone(link), station.start_timeout()).boxed().fuse()).into();
            }
            Some(tools) = &mut refresh, if !refresh.is_terminated() => station.refreshed(tools),
        }
    }
}

/// Lists the tools anew, a moment later: such news come in bursts.
async fn list_again(link: Arc<dyn Link>, limit: Duration) -> Result<Vec<Tool>, Failure> {
    sleep(BURST).await;
    timeout(limit, link.list_tools())
        .await
        .unwrap_or_else(|_| Err(list_timed_out(limit)))
}

async fn close(station: &Station, link: Arc<dyn Link>) {
    station.changed();
    let within = station.state().close_by.map_or(Duration::MAX, |by| {
        by.saturating_duration_since(Instant::now())
    });
    let closed = link.close(within).await;
    if closed.survivors != Some(0) {
        let (server, survivors) = (station.key().name(), closed.survivors);
        warn!(%server, ?survivors, "processes could not be proven dead");
    }
    station.state().killed = closed.killed;
    station.closed();
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
        let mut changes = self.changes();
        while self.phase() == Phase::Starting {
            drop(changes.changed().await);
        }
    }

    /// `false`: it was called off in the last moment.
    fn started(
        &self,
        pool: &Shared,
        link: &Arc<dyn Link>,
        tools: Result<Vec<Tool>, Failure>,
    ) -> bool {
        let mut state = self.state();
        if !state.machine.started(Instant::now()) {
            return false;
        }
        let restarted = state.restarting;
        let index = match state.index.filter(|_| restarted) {
            Some(index) => index,
            None => pool.next_index(self.key().name()),
        };
        state.restarting = false;
        state.index = Some(index);
        state.link = Some(Arc::clone(link));
        state.tools = Arc::new(ToolList::refreshed(&state.tools, tools));
        state.last_error = state.tools.stale.clone();
        drop(state);
        info!(server = %self.key().name(), index, pid = link.pid(), "connected");
        self.changed();
        true
    }

    /// A list of this very connection: its owner drops the refresh with the connection.
    fn refreshed(&self, tools: Result<Vec<Tool>, Failure>) {
        if let Err(failure) = &tools {
            warn!(server = %self.key().name(), %failure, "could not list the tools anew");
        }
        let mut state = self.state();
        state.tools = Arc::new(ToolList::refreshed(&state.tools, tools));
    }

    fn start_failed(&self, failure: Failure, counted: bool) {
        let failure = failure.with_origin(self.origin());
        warn!(server = %self.key().name(), %failure, "could not connect");
        let mut state = self.state();
        let epoch = state.epoch;
        state
            .machine
            .failed(Instant::now(), counted, failure.retry_after());
        state.last_error = Some(failure.clone());
        state.failed = Some(Failed { epoch, failure });
        state.restarting = false;
        drop(state);
        self.changed();
    }

    fn lost(&self, lost: &Lost) {
        warn!(server = %self.key().name(), %lost, "lost a connection");
        let mut state = self.state();
        state.machine.lost(Instant::now());
        state.link = None;
        state.last_error = Some(
            Failure::new(Class::Unknown)
                .with_origin(self.origin())
                .with_source(lost.clone()),
        );
    }

    /// The old connection is proven gone.
    fn closed(&self) {
        let mut state = self.state();
        let restart = state.machine.phase() == Phase::Closing(Why::Restart);
        state.restarting = restart;
        state.machine.closed();
        state.link = None;
        state.owner = None;
        drop(state);
        self.changed();
    }
}

fn over_slots(full: SlotsFull) -> Failure {
    Failure::new(Class::Rejected)
        .with_layer("pool")
        .with_source(full)
}

fn start_timed_out(elapsed: Duration) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(CallPhase::Connect)
        .with_elapsed(elapsed)
        .with_source("the server was not ready in time")
}

fn list_timed_out(limit: Duration) -> Failure {
    Failure::new(Class::Timeout)
        .with_phase(CallPhase::Read)
        .with_elapsed(limit)
        .with_source("the server did not list its tools in time")
}
