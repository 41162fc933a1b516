//! What all connections of one server share.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::events::{Event, EventKind};
use super::knobs::{Knobs, ListKnobs};
use super::ledger::{Execution, Ledger};
use super::log::Appender;
use super::message::Incoming;
use super::state::State;
use super::tasks::Tasks;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) knobs: Knobs,
    /// The process that the `helper` knob started.
    pub(crate) helper: OnceLock<u32>,
    ledger: Option<Appender>,
    events: Option<Appender>,
    state: State,
    pub(crate) tasks: Tasks,
    executions: Mutex<Executions>,
    answered: AtomicU64,
    list_changed: AtomicBool,
    finished_token: Mutex<Option<Value>>,
    random: Mutex<fastrand::Rng>,
    exit: watch::Sender<Option<i32>>,
}

#[derive(Debug, Default)]
struct Executions {
    count: u64,
    keys: HashSet<String>,
}

/// What became of the wish to execute a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Executed {
    /// It ran, as the how manieth of this process.
    Now(u64),
    /// A call with the same idempotency key ran before.
    Before,
}

// === impl Server ===

impl Server {
    /// Opens the logs, counts the start and picks the knobs that hold for it.
    pub(crate) fn start(knobs: Knobs) -> io::Result<Arc<Self>> {
        let state = State::open(knobs.state.as_deref())?;
        let knobs = knobs.at_start(state.count("start")?);
        let open = |path: &Option<_>| path.as_deref().map(Appender::open).transpose();
        let server = Self {
            helper: OnceLock::new(),
            ledger: open(&knobs.ledger)?,
            events: open(&knobs.events)?,
            tasks: Tasks::open(knobs.state.as_deref())?,
            state,
            executions: Mutex::default(),
            answered: AtomicU64::new(0),
            list_changed: AtomicBool::new(false),
            finished_token: Mutex::default(),
            random: Mutex::new(
                knobs
                    .seed
                    .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            ),
            exit: watch::Sender::new(None),
            knobs,
        };
        server.tell(EventKind::Start);
        Ok(Arc::new(server))
    }

    // === logs ===

    pub(crate) fn tell(&self, kind: EventKind) {
        self.log(&Event::of_process(kind, std::process::id()));
    }

    pub(crate) fn tell_of(&self, kind: EventKind, id: &Value) {
        self.log(&Event {
            id: Some(id.clone()),
            ..Event::of_process(kind, std::process::id())
        });
    }

    pub(crate) fn tell_received(&self, message: &Incoming) {
        self.log(&Event::of_message(message));
    }

    #[cfg(unix)]
    pub(crate) fn tell_helper(&self, pid: u32) {
        self.log(&Event::of_process(EventKind::Helper, pid));
    }

    fn log(&self, event: &Event) {
        if let Some(events) = &self.events
            && let Err(error) = events.append(event)
        {
            eprintln!("probe: cannot write the events log: {error}");
        }
    }

    /// Runs a call: it counts as executed when this returns [`Executed::Now`].
    pub(crate) fn execute(&self, mut execution: Execution) -> io::Result<Executed> {
        // Held over the writing, so that two calls with one key cannot both find it unused.
        let mut executions = lock(&self.executions);
        if let Some(key) = &execution.key
            && (executions.keys.contains(key) || self.is_in_ledger(key)?)
        {
            return Ok(Executed::Before);
        }
        execution.seq = executions.count + 1;
        if let Some(ledger) = &self.ledger {
            ledger.append_synced(&execution)?;
        }
        executions.count = execution.seq;
        executions.keys.extend(execution.key);
        Ok(Executed::Now(execution.seq))
    }

    fn is_in_ledger(&self, key: &str) -> io::Result<bool> {
        let Some(path) = &self.knobs.ledger else {
            return Ok(false);
        };
        let known = Ledger::new(path.as_path()).entries()?;
        Ok(known.iter().any(|e| e.key.as_deref() == Some(key)))
    }

    // === counters and switches ===

    /// How often this was counted before, also by earlier processes if there is a `state` file.
    pub(crate) fn count(&self, key: &str) -> io::Result<u64> {
        self.state.count(key)
    }

    /// How often a call with this key (its tag or tool) was received before.
    pub(crate) fn count_call(&self, key: &str) -> io::Result<u64> {
        self.state.count(&format!("call:{key}"))
    }

    /// Notes that a call was answered and says whether the server exits after it.
    pub(crate) fn answered(&self, token: Option<&Value>) -> bool {
        if let Some(token) = token {
            *lock(&self.finished_token) = Some(token.clone());
        }
        let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = self.knobs.process.exit_after_calls;
        limit.is_some_and(|limit| answered >= limit)
    }

    /// The progress token of a call that was answered.
    pub(crate) fn finished_token(&self) -> Option<Value> {
        lock(&self.finished_token).clone()
    }

    pub(crate) fn change_list(&self) {
        self.list_changed.store(true, Ordering::Relaxed);
    }

    /// The list as it is now.
    pub(crate) fn list(&self) -> ListKnobs {
        let list = &self.knobs.list;
        if !self.list_changed.load(Ordering::Relaxed) {
            return list.clone();
        }
        list.changed.as_deref().cloned().unwrap_or_else(|| {
            let mut list = list.clone();
            list.names.push("added".to_owned());
            list
        })
    }

    pub(crate) fn random<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut lock(&self.random))
    }

    // === the end ===

    /// Ends the server at once; what is still queued for writing is lost, as in a crash.
    pub(crate) fn exit(&self, code: i32) {
        self.exit.send_if_modified(|exit| {
            let first = exit.is_none();
            exit.get_or_insert(code);
            first
        });
    }

    pub(crate) async fn exited(&self) -> i32 {
        let mut exit = self.exit.subscribe();
        loop {
            if let Some(code) = *exit.borrow_and_update() {
                return code;
            }
            if exit.changed().await.is_err() {
                return 0;
            }
        }
    }

    /// Appends `word` to the `goodbye` file, if there is one.
    pub(crate) fn say(&self, word: &str) {
        use std::io::Write;

        let append = |path: &Path| {
            let mut file = std::fs::File::options()
                .append(true)
                .create(true)
                .open(path)?;
            writeln!(file, "{word}")
        };
        if let Some(path) = &self.knobs.process.goodbye
            && let Err(error) = append(path)
        {
            eprintln!("probe: cannot write the goodbye file: {error}");
        }
    }
}

/// A panic in one call must not take the server's other calls with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
