//! Who speaks to the probe: sessions with an id, and requests that need none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::super::outbox::Outbox;
use super::super::server::{Server, lock};
use super::super::session::Session;
use super::stream::Stream;

/// The stream for what belongs to no request.
pub(crate) const ASIDE: u64 = 0;

/// One client's session, or a single request of 2026-07-28.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) id: Option<String>,
    pub(crate) session: Arc<Session>,
    pub(crate) is_stateless: bool,
    /// Where what belongs to no request goes, and how far it was delivered.
    pub(crate) aside: Outbox,
    pub(crate) aside_place: AtomicUsize,
    /// Those that can be resumed.
    streams: Mutex<HashMap<u64, Arc<Stream>>>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: Mutex<HashMap<String, Arc<Visit>>>,
    /// For a server that hands out no sessions.
    common: Mutex<Option<Arc<Visit>>>,
    all: Mutex<Vec<Weak<Session>>>,
}

// === impl Visit ===

impl Visit {
    /// A stream for one more request, and its number.
    pub(crate) fn open(&self, is_kept: bool) -> (u64, Arc<Stream>) {
        let (number, stream) = (self.next.fetch_add(1, Ordering::Relaxed), Stream::new());
        if is_kept {
            lock(&self.streams).insert(number, Arc::clone(&stream));
        }
        (number, stream)
    }

    pub(crate) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        lock(&self.streams).get(&number).cloned()
    }

    /// Forgets a stream: it was delivered whole.
    pub(crate) fn delivered(&self, number: u64) {
        if number != ASIDE {
            lock(&self.streams).remove(&number);
        }
    }
}

// === impl Sessions ===

impl Sessions {
    fn visit(&self, server: &Arc<Server>, id: Option<String>, is_stateless: bool) -> Arc<Visit> {
        let session = Session::new(Arc::clone(server));
        let mut all = lock(&self.all);
        all.retain(|session| session.strong_count() > 0);
        all.push(Arc::downgrade(&session));
        let (aside, queue) = Outbox::new();
        let stream = Stream::new();
        tokio::spawn(Arc::clone(&stream).fill(queue));
        Arc::new(Visit {
            id,
            session,
            is_stateless,
            aside,
            aside_place: AtomicUsize::new(0),
            streams: Mutex::new(HashMap::from([(ASIDE, stream)])),
            next: AtomicU64::new(ASIDE + 1),
        })
    }

    /// A session with a new id.
    pub(crate) fn begin(&self, server: &Arc<Server>) -> Arc<Visit> {
        let id = format!("{:016x}", fastrand::u64(..));
        let visit = self.visit(server, Some(id.clone()), false);
        lock(&self.known).insert(id, Arc::clone(&visit));
        visit
    }

    /// A request on its own.
    pub(crate) fn single(&self, server: &Arc<Server>) -> Arc<Visit> {
        self.visit(server, None, true)
    }

    /// The one session of a server that hands out none.
    pub(crate) fn common(&self, server: &Arc<Server>) -> Arc<Visit> {
        let mut common = lock(&self.common);
        let visit = common.get_or_insert_with(|| self.visit(server, None, false));
        Arc::clone(visit)
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Visit>> {
        lock(&self.known).get(id).cloned()
    }

    /// Ends a session, and what runs in it.
    pub(crate) fn end(&self, id: &str) -> bool {
        let ended = lock(&self.known).remove(id);
        if let Some(visit) = &ended {
            visit.session.stop();
        }
        ended.is_some()
    }

    /// Knows none of them any more; what runs goes on.
    pub(crate) fn forget(&self) {
        lock(&self.known).clear();
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.known).len()
    }

    /// How many calls run, in all of them.
    pub(crate) fn running(&self) -> usize {
        let all = lock(&self.all);
        let sessions = all.iter().filter_map(Weak::upgrade);
        sessions.map(|session| session.running()).sum()
    }

    pub(crate) fn stop(&self) {
        for session in lock(&self.all).drain(..).filter_map(|all| all.upgrade()) {
            session.stop();
        }
    }
}
