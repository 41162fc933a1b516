//! Connections that take no new calls, while the last ones on them may finish.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::state::Connection;

/// Those of one pool. The sessions they belonged to have another connection already.
#[derive(Debug)]
pub(crate) struct Lingering {
    left: Mutex<Left>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Left {
    next: u64,
    connections: HashMap<u64, Connection>,
}

/// Forgets a connection, however the task that waits for its calls ends.
struct Forget {
    lingering: Arc<Lingering>,
    number: u64,
}

// === impl Lingering ===

impl Lingering {
    pub(crate) fn new() -> Arc<Self> {
        let tasks = TaskTracker::new();
        // Closed from the start: whoever waits for them waits for those there are.
        tasks.close();
        Arc::new(Self {
            left: Mutex::default(),
            tasks,
        })
    }

    /// Closes a connection, within `limit`, once its last call has ended. Must be called
    /// within a runtime.
    pub(super) fn keep(self: &Arc<Self>, connection: Connection, limit: Duration) {
        let number = self.left().keep(connection.clone());
        let forget = Forget {
            lingering: Arc::clone(self),
            number,
        };
        self.tasks.spawn(end(connection, limit, forget));
    }

    /// The calls that still run on them end now.
    pub(crate) fn cut(&self) {
        for connection in self.left().connections.values() {
            connection.gone.cancel();
        }
    }

    /// Resolves when none is left.
    pub(crate) async fn gone(&self) {
        self.tasks.wait().await;
    }

    /// Ends them at once, in a runtime or not.
    pub(crate) fn kill_all(&self) {
        let connections = std::mem::take(&mut self.left().connections);
        for connection in connections.into_values() {
            connection.gone.cancel();
            connection.link.kill();
        }
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(connection: Connection, limit: Duration, _forget: Forget) {
    let Connection { link, gone, calls } = connection;
    calls.close();
    tokio::select! {
        () = calls.wait() => {}
        () = gone.cancelled() => {}
    }
    gone.cancel();
    if timeout(limit, Arc::clone(&link).close(limit))
        .await
        .is_err()
    {
        link.kill();
    }
}

// === impl Left ===

impl Left {
    fn keep(&mut self, connection: Connection) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connections.insert(number, connection);
        number
    }
}

// === impl Forget ===

impl Drop for Forget {
    fn drop(&mut self) {
        self.lingering.left().connections.remove(&self.number);
    }
}
