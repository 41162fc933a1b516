//! A place for one test with real processes.

use std::{
    any::Any,
    mem,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use serde_json::{Value, json};
use steadfast::{
    ConfigFile, Pool, PoolSettings, ServerConfig,
    pool::{Respawn, process::Grace},
};
use steadfast_tests::probe::{Event, EventKind, Events, Knobs, Ledger};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{SOON, Spy, gone, ms, secs, until};

const PROBE: &str = env!("CARGO_BIN_EXE_probe");

/// Two cores schedule no more than this and still keep "soon".
static PLACES: Semaphore = Semaphore::const_new(2);

/// A place for one test with real processes: a folder, and what all of its probes log.
pub(crate) struct Stage {
    dir: TempDir,
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
    left: Mutex<Vec<Box<dyn Fn() -> usize + Send + Sync>>>,
    _place: SemaphorePermit<'static>,
}

// === impl Stage ===

impl Stage {
    pub(crate) async fn enter() -> Self {
        Self {
            _place: PLACES.acquire().await.expect("never closed"),
            dir: tempfile::tempdir().expect("a folder"),
            kept: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// Drops this when the stage has ended.
    pub(crate) fn keep(&self, kept: impl Send + 'static) {
        self.kept.lock().unwrap().push(Box::new(kept));
    }

    /// Of these none is left soon after a pool has been drained.
    pub(crate) fn none_is_left(&self, left: impl Fn() -> usize + Send + Sync + 'static) {
        self.left.lock().unwrap().push(Box::new(left));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(self.path("ledger"))
    }

    /// How often calls of this tag were executed.
    pub(crate) fn executed(&self, tag: &str) -> usize {
        self.ledger().count_tag(tag).expect("a ledger")
    }

    pub(crate) async fn executed_soon(&self, tag: &str) {
        let found = |lines: &[steadfast_tests::probe::Execution]| {
            lines.iter().any(|line| line.tag.as_deref() == Some(tag))
        };
        let seen = self.ledger().wait_for(SOON, found).await;
        seen.expect("it is executed soon");
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        Events::new(self.path("events")).entries().expect("events")
    }

    /// The events once `found` likes them.
    pub(crate) async fn events_with(&self, found: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let events = Events::new(self.path("events"));
        events.wait_for(SOON, found).await.expect("comes soon")
    }

    /// Of each start of a server, its pid.
    pub(crate) fn started(&self) -> Vec<u32> {
        self.pids(EventKind::Start)
    }

    pub(crate) fn pids(&self, kind: EventKind) -> Vec<u32> {
        let events = self.events();
        let of_kind = events.iter().filter(|event| event.kind == kind);
        of_kind.map(|event| event.pid).collect()
    }

    /// How often a message with this method was received.
    pub(crate) fn received(&self, method: &str) -> usize {
        let events = self.events();
        let of_method = |event: &&Event| event.method.as_deref() == Some(method);
        events.iter().filter(of_method).count()
    }

    /// A probe with these knobs whose logs are in this folder, but for those that are `null`.
    pub(crate) fn knobs(&self, knobs: &Value) -> Knobs {
        let mut knobs = knobs.clone();
        for file in ["ledger", "events", "state"] {
            if knobs.get(file).is_none() {
                knobs[file] = json!(self.path(file));
            }
        }
        Knobs::from_json(&knobs.to_string()).expect("knobs")
    }

    /// The server that such a probe is. What its tools say of themselves is believed.
    pub(crate) fn server(&self, knobs: &Value) -> ServerConfig {
        self.server_with(knobs, json!({}))
    }

    /// The same with more fields in its entry.
    pub(crate) fn server_with(&self, knobs: &Value, fields: Value) -> ServerConfig {
        let mut entry = self.knobs(knobs).server_json(Path::new(PROBE));
        entry["trust"] = json!(true);
        merge(&mut entry, fields);
        let file = json!({ "mcpServers": { "probe": entry } });
        let servers = ConfigFile::parse(&file.to_string()).into_servers();
        servers.expect("a good entry").remove(0)
    }

    /// Ends the pool. Nothing of it may be left, and nothing may have had to be forced.
    pub(crate) async fn end(self, pool: Pool) {
        let report = pool.drain_all(secs(10)).await;
        assert_eq!(report.forced, []);
        self.ended(pool).await;
    }

    /// What holds when a pool has been drained, however.
    pub(crate) async fn ended(self, pool: Pool) {
        let snapshot = pool.snapshot();
        assert_eq!((snapshot.total, snapshot.subprocess_count), (0, 0));
        let entries = snapshot.servers.values().flat_map(|s| &s.entry_summary);
        for entry in entries {
            assert_eq!(entry.in_flight, 0, "a call is pending: {entry:?}");
        }
        let counts = mem::take(&mut *self.left.lock().unwrap());
        for left in counts {
            assert!(until(|| left() == 0).await, "connections are left");
        }
        self.kept.lock().unwrap().clear();
        let mut pids = self.started();
        pids.extend(self.pids(EventKind::Helper));
        gone(pids).await;
    }
}

/// Respawns and closes quickly.
pub(crate) fn pool_settings() -> PoolSettings {
    PoolSettings::default()
        .with_respawn_local(Respawn::new([ms(10); 3], ms(10)))
        .with_respawn_remote(Respawn::new([ms(10); 3], ms(10)))
        .with_closing(Grace::new(ms(300), ms(300), Duration::from_secs(1)))
}

impl Stage {
    pub(crate) fn pool(&self) -> Pool {
        Pool::new(pool_settings()).expect("good settings")
    }

    pub(crate) fn pool_with(&self, settings: PoolSettings) -> Pool {
        Pool::new(settings).expect("good settings")
    }

    /// The same, and a look at its wires.
    pub(crate) fn spied_pool(&self) -> (Pool, Spy) {
        let spy = Spy::new();
        let pool = Pool::with_connector(pool_settings(), spy.clone());
        (pool.expect("good settings"), spy)
    }
}

fn merge(entry: &mut Value, fields: Value) {
    match (entry, fields) {
        (Value::Object(entry), Value::Object(fields)) => {
            for (name, field) in fields {
                merge(entry.entry(name).or_insert(Value::Null), field);
            }
        }
        (entry, field) => *entry = field,
    }
}
