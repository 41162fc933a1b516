//! What is told: one function per event, for logs, for listeners and, with feature
//! `metrics`, as numbers. Never called under a lock.

use std::{sync::Arc, time::Duration};

use steadfast_classify::Failure;
use tracing::{debug, info, warn};

use crate::{
    Closed, Flaw, Lost,
    events::{DetachReason, Events, PoolEvent},
};

/// One connection of one server.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) server: Arc<str>,
    pub(crate) index: u32,
}

/// A connection is usable.
pub(crate) fn connected(
    events: &Events,
    entry: &Entry,
    pid: Option<u32>,
    restarted: bool,
    took: Duration,
) {
    let Entry { server, index } = entry;
    info!(%server, index, pid, restarted, ?took, "connected");
    #[cfg(feature = "metrics")]
    {
        let server = || Arc::clone(server);
        metrics::counter!("steadfast.pool.starts", "server" => server(), "outcome" => "connected")
            .increment(1);
        metrics::histogram!("steadfast.pool.start.duration", "server" => server()).record(took);
        metrics::gauge!("steadfast.pool.connections", "server" => server()).increment(1.0);
    }
    events.send(|| PoolEvent::Connected {
        server: Arc::clone(server),
        entry_index: *index,
        pid,
        restarted,
        took,
    });
}

/// A connection could not be made.
pub(crate) fn start_failed(events: &Events, server: &Arc<str>, failure: &Failure) {
    warn!(%server, class = failure.class().as_str(), %failure, "could not connect");
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "steadfast.pool.starts",
        "server" => Arc::clone(server), "outcome" => failure.class().as_str()
    )
    .increment(1);
    events.send(|| PoolEvent::StartFailed {
        server: Arc::clone(server),
        failure: failure.clone(),
    });
}

/// A server answers other things, and no pings.
pub(crate) fn ignores_pings(server: &Arc<str>) {
    info!(%server, "this server does not answer pings, and is not pinged any more");
}

/// A connection ended by itself.
pub(crate) fn failed(events: &Events, entry: &Entry, lost: &Lost) {
    let Entry { server, index } = entry;
    warn!(%server, index, %lost, "lost a connection");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.pool.losses", "server" => Arc::clone(server)).increment(1);
    events.send(|| PoolEvent::Failed {
        server: Arc::clone(server),
        entry_index: *index,
        lost: lost.clone(),
    });
}

/// The holders of an entry have no connection any more.
pub(crate) fn detached(events: &Events, entry: &Entry, reason: DetachReason) {
    let Entry { server, index } = entry;
    debug!(%server, index, reason = reason.as_str(), "closing a connection");
    #[cfg(feature = "metrics")]
    metrics::gauge!("steadfast.pool.connections", "server" => Arc::clone(server)).decrement(1.0);
    events.send(|| PoolEvent::Detached {
        server: Arc::clone(server),
        entry_index: *index,
        reason,
    });
}

/// Nothing is left of a connection, or nobody can tell whether something is.
pub(crate) fn closed(events: &Events, entry: &Entry, closed: Closed) {
    let Entry { server, index } = entry;
    let Closed {
        killed,
        survivors,
        took,
    } = closed;
    if survivors == Some(0) {
        debug!(%server, index, killed, ?took, "closed a connection");
    } else {
        // Unknown is not none.
        warn!(%server, index, killed, ?survivors, ?took, "processes could not be proven dead");
    }
    #[cfg(feature = "metrics")]
    if killed {
        metrics::counter!("steadfast.pool.killed", "server" => Arc::clone(server)).increment(1);
    }
    events.send(|| PoolEvent::Closed {
        server: Arc::clone(server),
        entry_index: *index,
        closed,
    });
}

/// Lists were asked for anew.
pub(crate) fn lists_changed(events: &Events, entry: &Entry, stale: Option<&Failure>) {
    let Entry { server, index } = entry;
    match stale {
        None => debug!(%server, index, "listed anew"),
        Some(failure) => warn!(%server, index, %failure, "could not list anew"),
    }
    events.send(|| PoolEvent::ListsChanged {
        server: Arc::clone(server),
        entry_index: *index,
        stale: stale.cloned(),
    });
}

/// Something is left out of a list, if so.
pub(crate) fn flawed(events: &Events, entry: &Entry, list: &'static str, flaws: &Arc<[Flaw]>) {
    let Some(first) = flaws.first() else { return };
    let Entry { server, index } = entry;
    let left_out = flaws.len();
    warn!(%server, index, list, left_out, %first, "a list is not as it should be");
    events.send(|| PoolEvent::ListFlawed {
        server: Arc::clone(server),
        entry_index: *index,
        list,
        flaws: Arc::clone(flaws),
    });
}

/// A configuration names tools that there are not.
pub(crate) fn tools_missing(events: &Events, server: &Arc<str>, tools: Vec<Arc<str>>) {
    warn!(%server, ?tools, "the configuration names tools that the server does not have");
    events.send(|| PoolEvent::ToolsMissing {
        server: Arc::clone(server),
        tools,
    });
}

/// Names take 75 % of the slots.
pub(crate) fn slots_warning(events: &Events, held: usize, limit: usize) {
    warn!(held, limit, "servers take 75 % of their slots");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.pool.slots.warnings").increment(1);
    events.send(|| PoolEvent::SlotsWarning { held, limit });
}

/// Servers were refused to a session for want of a slot.
pub(crate) fn slots_refused(
    events: &Events,
    session: &Arc<str>,
    servers: Vec<Arc<str>>,
    limit: usize,
) {
    debug!(%session, ?servers, limit, "no slot is free");
    #[cfg(feature = "metrics")]
    metrics::counter!("steadfast.pool.slots.refusals").increment(servers.len() as u64);
    events.send(|| PoolEvent::SlotsRefused {
        session: Arc::clone(session),
        servers,
        limit,
    });
}

/// The pool was drained.
pub(crate) fn drained(events: &Events, drained: usize, forced: usize, took: Duration) {
    info!(drained, forced, ?took, "drained");
    events.send(|| PoolEvent::Drained { drained, forced });
}
