//! What a pool holds, as plain data.

use std::{collections::BTreeMap, time::Duration};

use serde::{Serialize, Serializer};

use crate::entry::Phase;

/// What a pool holds at one moment. Holds no secret, and no hash of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Snapshot {
    /// How many connections are usable.
    pub total: usize,
    /// How many of them are processes that the pool started.
    pub subprocess_count: usize,
    /// How many servers may run at once, and how many do.
    pub slots: SlotsSnapshot,
    /// The entries of each server name.
    pub servers: BTreeMap<String, ServerSnapshot>,
}

/// How many servers may run at once, by name, and how many do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SlotsSnapshot {
    /// `off`, `warn` or `enforce`.
    pub mode: &'static str,
    /// How many names may take a slot; `None` where slots are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How many do; 0 where slots are not counted.
    pub used: usize,
}

/// The entries of one server name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerSnapshot {
    /// How many there are, whatever their status.
    pub entry_count: usize,
    /// Each of them.
    pub entry_summary: Vec<EntrySnapshot>,
}

/// One entry: one configuration of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EntrySnapshot {
    /// Its number: per server name, from 0, never used again, kept over restarts. `None`
    /// before the first connection.
    pub entry_index: Option<u32>,
    /// How many leases hold it.
    pub refs: usize,
    /// What it is doing.
    pub status: Status,
    /// The server's process, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How many calls are under way, those included that wait for their turn or for the
    /// connection.
    pub in_flight: usize,
    /// How often it was restarted on purpose.
    pub restarts: u32,
    /// When its connection is closed if nobody comes for it, in milliseconds from now.
    /// `None` while somebody holds it.
    #[serde(rename = "closesInMs", serialize_with = "millis")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes_in: Option<Duration>,
    /// Why its last connection, or the last attempt to get one, ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What an entry is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Status {
    /// No connection; the next call makes one.
    Idle,
    /// A connection is being made.
    Connecting,
    /// Usable.
    Connected,
    /// A connection is being ended.
    Closing,
    /// No connection, after so many failures that only one attempt is made from time to
    /// time.
    Failed,
}

/// What a station says of itself.
#[derive(Debug)]
pub(crate) struct EntryView {
    pub(crate) index: Option<u32>,
    pub(crate) refs: usize,
    pub(crate) phase: Phase,
    pub(crate) failed: bool,
    pub(crate) pid: Option<u32>,
    pub(crate) in_flight: usize,
    pub(crate) restarts: u32,
    pub(crate) closes_in: Option<Duration>,
    pub(crate) last_error: Option<String>,
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn add(&mut self, name: &str, local: bool, view: EntryView) {
        let entry = EntrySnapshot::from(view);
        if entry.status == Status::Connected {
            self.total += 1;
            self.subprocess_count += usize::from(local);
        }
        let server = self.servers.entry(name.to_owned()).or_default();
        server.entry_count += 1;
        server.entry_summary.push(entry);
    }

    pub(crate) fn sort(&mut self) {
        for server in self.servers.values_mut() {
            server.entry_summary.sort_by_key(|entry| entry.entry_index);
        }
    }
}

// === impl EntrySnapshot ===

impl From<EntryView> for EntrySnapshot {
    fn from(view: EntryView) -> Self {
        let status = match view.phase {
            Phase::Vacant if view.failed => Status::Failed,
            Phase::Vacant => Status::Idle,
            Phase::Starting => Status::Connecting,
            Phase::Active { .. } => Status::Connected,
            Phase::Leaving { .. } | Phase::Closing(_) => Status::Closing,
        };
        Self {
            entry_index: view.index,
            refs: view.refs,
            status,
            pid: view.pid,
            in_flight: view.in_flight,
            restarts: view.restarts,
            closes_in: view.closes_in,
            last_error: view.last_error,
        }
    }
}

fn millis<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
    millis.serialize(serializer)
}
