//! The handle of one circuit.

use std::{fmt, sync::Arc};

use tokio::sync::watch;

use crate::{InvalidSettings, Settings, Snapshot, State, Transition, shared::Shared, state::Label};

/// One circuit: a handle that is cheap to clone, and all clones are the same circuit.
///
/// Every service a layer makes shares the layer's. Use the handle to look at it, to wait
/// for its changes, and to take it over by hand; all of this is synchronous.
///
/// ```
/// # use steadfast_circuit_breaker::{Breaker, InvalidSettings, Settings, State};
/// let breaker = Breaker::new("github", Settings::new())?;
/// breaker.isolate();
/// assert_eq!(breaker.state(), State::Isolated);
/// breaker.reset();
/// assert_eq!(breaker.state(), State::Closed);
/// # Ok::<_, InvalidSettings>(())
/// ```
#[derive(Clone)]
pub struct Breaker {
    shared: Arc<Shared>,
    /// Counts the handles that somebody was given of a keyed breaker's circuit, which is
    /// not evicted while there are any.
    _pin: Option<Arc<()>>,
}

/// The changes of one circuit's state, as they happen.
///
/// It never goes back: what it shows is the newest change or one that follows. Changes in
/// quick succession may be seen as one.
#[derive(Clone, Debug)]
pub struct Transitions(watch::Receiver<Transition>);

// === impl Breaker ===

impl Breaker {
    /// A closed circuit. Its name is in each rejection, in logs and in metrics.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error says which one, and what is allowed.
    pub fn new(name: impl Into<Arc<str>>, settings: Settings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let label = Label {
            name: name.into(),
            key: None,
        };
        let shared = Arc::new(Shared::new(label, Arc::new(settings)));
        Ok(Self { shared, _pin: None })
    }

    /// A circuit of a registry, which may evict it all the same.
    pub(crate) const fn of_keyed(shared: Arc<Shared>) -> Self {
        Self { shared, _pin: None }
    }

    /// A handle that keeps it in its registry.
    pub(crate) fn pinned(&self, pin: &Arc<()>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            _pin: Some(Arc::clone(pin)),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.label.name
    }

    /// Which of a keyed breaker's circuits it is, as the key's `Debug` prints it.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.shared.label.key.as_deref()
    }

    /// Its state now. Open stays open until a call comes that can be the probe.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// What it looks like now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Its changes from now on.
    #[must_use]
    pub fn watch(&self) -> Transitions {
        Transitions(self.shared.watch())
    }

    /// Turns every call away until it is [reset](Self::reset). Calls that run go on, but no
    /// longer count.
    ///
    /// This holds for an [`observe_only`](Self::observe_only) circuit too: it is somebody's
    /// word, not the breaker's.
    pub fn isolate(&self) {
        self.shared.isolate();
    }

    /// Closes it, as if it were new, whatever state it is in. Calls that run go on, but no
    /// longer count.
    pub fn reset(&self) {
        self.shared.reset();
    }

    /// From now on only watches (`true`): everything is counted and told, and nobody is
    /// turned away; or acts (`false`) on the state it is in.
    pub fn observe_only(&self, observe_only: bool) {
        self.shared.observe_only(observe_only);
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("name", &self.name())
            .field("key", &self.key())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

// === impl Transitions ===

impl Transitions {
    /// The newest change. Before the first one, that it was made: from closed to closed.
    #[must_use]
    pub fn current(&self) -> Transition {
        *self.0.borrow()
    }

    /// Waits for a change that this has not returned yet; `None` once every handle of the
    /// circuit is gone.
    ///
    /// # Cancel safety
    ///
    /// No change is lost if the future is dropped.
    pub async fn changed(&mut self) -> Option<Transition> {
        self.0.changed().await.ok()?;
        Some(*self.0.borrow_and_update())
    }
}
