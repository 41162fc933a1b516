//! What a connection is to its server.

#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::model::{
    ClientCapabilities, ElicitationCapability, ExtensionCapabilities, FormElicitationCapability,
    JsonObject, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::model::{ListRootsResult, RootsCapabilities, SamplingCapability};

use super::{MOST_OPEN, Offers, Owner, Root, roots::listed};
use crate::seat::Scope;

/// What a connection is to its server: what it announces in its handshake, and who answers
/// what the server asks over it.
///
/// The pool makes one for each key, and gives it to whoever makes the key's connections. A
/// clone is the same host. [`Default`] announces that tasks are followed, and refuses
/// everything else.
#[derive(Clone, Default)]
pub struct Host(Arc<Inner>);

#[derive(Default)]
struct Inner {
    server: Arc<str>,
    roots: Option<Vec<Root>>,
    /// The only session that these connections are for.
    sole: Option<Arc<Scope>>,
    running: Mutex<Running>,
    /// How many questions are open.
    open: AtomicUsize,
}

/// The calls that questions may be about.
#[derive(Default)]
struct Running {
    /// Where they are for one session only: all of them.
    calls: Vec<Arc<Owner>>,
    /// By the tasks that they are.
    tasks: HashMap<String, Arc<Owner>>,
}

/// A question that is open until this is dropped.
pub(super) struct Open<'a>(&'a AtomicUsize);

/// Questions about a task come to the session of its call until this is dropped.
#[derive(Debug)]
pub(crate) struct Routed<'a> {
    host: &'a Host,
    task: &'a str,
    owner: Arc<Owner>,
}

// === impl Host ===

impl Host {
    /// For the connections of one key; `sole` is their session, where there is only one.
    pub(crate) fn new(
        server: &Arc<str>,
        roots: Option<Vec<Root>>,
        sole: Option<Arc<Scope>>,
    ) -> Self {
        Self(Arc::new(Inner {
            server: Arc::clone(server),
            roots,
            sole,
            running: Mutex::default(),
            open: AtomicUsize::new(0),
        }))
    }

    /// What is to be announced to the server: only what can be answered. That is tasks; the
    /// pool's roots, if it has some; and what the session answers, where the connection is
    /// its own. Over a shared one nobody could tell whom the server asks.
    #[must_use]
    pub fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::default();
        // Whatever connection a task was begun on, the pool follows it.
        let tasks = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        capabilities.extensions = Some(ExtensionCapabilities::from([tasks]));
        let roots = self.0.roots.as_ref().map(|_| RootsCapabilities::default());
        capabilities.roots = roots;
        let handler = self.0.sole.as_ref().and_then(|scope| scope.handler());
        match handler {
            Some(handler) => offering(capabilities, handler.offers()),
            None => capabilities,
        }
    }

    /// The pool's roots, if it has some.
    pub(crate) fn roots(&self) -> Option<ListRootsResult> {
        self.0.roots.as_deref().map(listed)
    }

    pub(super) fn server(&self) -> &Arc<str> {
        &self.0.server
    }

    /// One more open question; `None` if there are too many already.
    pub(super) fn open(&self) -> Option<Open<'_>> {
        let open = Open(&self.0.open);
        // Counted first, so that no two take the last place.
        (open.0.fetch_add(1, Ordering::Relaxed) < MOST_OPEN).then_some(open)
    }

    pub(super) fn sole(&self) -> Option<&Arc<Scope>> {
        self.0.sole.as_ref()
    }

    pub(super) fn add_call(&self, owner: &Arc<Owner>) {
        if self.0.sole.is_some() {
            self.running().calls.push(Arc::clone(owner));
        }
    }

    pub(super) fn remove_call(&self, owner: &Arc<Owner>) {
        if self.0.sole.is_some() {
            let calls = &mut self.running().calls;
            calls.retain(|call| !Arc::ptr_eq(call, owner));
        }
    }

    /// All calls that run, where these connections are for one session only.
    pub(super) fn calls(&self) -> Vec<Arc<Owner>> {
        self.running().calls.clone()
    }

    /// Sends questions about a task to the session of the call that it is.
    pub(crate) fn route<'a>(&'a self, task: &'a str, owner: &Arc<Owner>) -> Routed<'a> {
        let tasks = &mut self.running().tasks;
        // The first call that a task is stays it, whatever its server says later.
        tasks
            .entry(task.to_owned())
            .or_insert_with(|| Arc::clone(owner));
        Routed {
            host: self,
            task,
            owner: Arc::clone(owner),
        }
    }

    /// The call that a task is.
    pub(super) fn call_of(&self, task: &str) -> Option<Arc<Owner>> {
        self.running().tasks.get(task).cloned()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("shared", &self.0.sole.is_none())
            .finish_non_exhaustive()
    }
}

// === impl Open ===

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Routed ===

impl Drop for Routed<'_> {
    fn drop(&mut self) {
        let tasks = &mut self.host.running().tasks;
        let own = tasks.get(self.task);
        if own.is_some_and(|own| Arc::ptr_eq(own, &self.owner)) {
            tasks.remove(self.task);
        }
    }
}

/// Adds what a session answers.
pub(crate) fn offering(mut capabilities: ClientCapabilities, offers: Offers) -> ClientCapabilities {
    if offers.forms || offers.urls {
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = offers.forms.then(FormElicitationCapability::default);
        elicitation.url = offers.urls.then(UrlElicitationCapability::default);
        capabilities.elicitation = Some(elicitation);
    }
    if offers.sampling {
        let sampling = SamplingCapability::default();
        capabilities.sampling = Some(sampling);
    }
    capabilities
}
