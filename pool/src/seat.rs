//! Sessions and the seats they hold.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use steadfast_classify::Failure;
use tokio_util::sync::CancellationToken;

use crate::{
    AskHandler, ServerConfig,
    entry::{Era, Station},
    error::{Refused, refused},
    view::{Catalog, Projection},
};

/// Numbers for scopes and seats, unique in this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A session's right to hold seats. Once it is closed nothing can be attached to it,
/// whatever is in flight.
pub(crate) struct Scope {
    number: u64,
    id: Arc<str>,
    closed: CancellationToken,
    /// Who answers what servers ask of it.
    handler: OnceLock<Mutex<Option<Arc<dyn AskHandler>>>>,
    /// `None` once it is closed.
    seats: Mutex<Option<HashMap<u64, Weak<Seat>>>>,
}

/// One place at one station. Given up exactly once: by its last holder, or by the end of
/// its session.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    scope: Arc<Scope>,
    station: Arc<Station>,
    era: Era,
    config: ServerConfig,
    released: AtomicBool,
    /// What it saw last of the server's lists.
    seen: Mutex<Option<Arc<Projection>>>,
}

// === impl Scope ===

impl Scope {
    pub(crate) fn new(id: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            id,
            closed: CancellationToken::new(),
            handler: OnceLock::new(),
            seats: Mutex::new(Some(HashMap::new())),
        })
    }

    /// Tells this session from any other of the same name.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) const fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Says who answers what servers ask of it. The first word counts.
    pub(crate) fn set_handler(&self, handler: Arc<dyn AskHandler>) {
        let _ = self.handler.set(Mutex::new(Some(handler)));
    }

    pub(crate) fn handler(&self) -> Option<Arc<dyn AskHandler>> {
        let handler = self.handler.get()?;
        handler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Resolves when the session is closed.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Takes a seat at the station that `station` gives. That runs, and the seat is
    /// attached, in one critical section with the check that the session is open.
    pub(crate) fn seat(
        self: &Arc<Self>,
        config: &ServerConfig,
        station: impl FnOnce() -> Result<(Arc<Station>, Era), Failure>,
    ) -> Result<Arc<Seat>, Failure> {
        let mut seats = self.seats();
        let Some(seats) = seats.as_mut() else {
            return Err(refused(Refused::SessionClosed));
        };
        // Attached already: a station that nobody holds may be forgotten.
        let (station, era) = station()?;
        let seat = Arc::new(Seat {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            scope: Arc::clone(self),
            station,
            era,
            config: config.clone(),
            released: AtomicBool::new(false),
            seen: Mutex::default(),
        });
        seats.insert(seat.number, Arc::downgrade(&seat));
        Ok(seat)
    }

    /// Gives up all seats, and ends the calls that run on them.
    pub(crate) fn close(&self) {
        let seats = self.seats().take();
        self.closed.cancel();
        // It may hold a lease of this very session.
        let handler = self.handler.get().and_then(|handler| {
            let mut handler = handler.lock().unwrap_or_else(PoisonError::into_inner);
            handler.take()
        });
        drop(handler);
        for seat in seats.into_iter().flatten() {
            if let Some(seat) = seat.1.upgrade() {
                seat.release();
            }
        }
    }

    fn forget(&self, number: u64) {
        if let Some(seats) = self.seats().as_mut() {
            seats.remove(&number);
        }
    }

    fn seats(&self) -> MutexGuard<'_, Option<HashMap<u64, Weak<Seat>>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("number", &self.number)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

// === impl Seat ===

impl Seat {
    pub(crate) const fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub(crate) const fn station(&self) -> &Arc<Station> {
        &self.station
    }

    /// When it was taken.
    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    /// What the session sees of the server's lists: nothing, once it is over.
    pub(crate) fn sight(&self) -> Option<(Arc<Catalog>, Arc<Projection>)> {
        if self.scope.is_closed() {
            return None;
        }
        let catalog = self.station.catalog(self.era)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = self.config.filter();
        let projections = self.station.projections();
        let projection = projections.get(&catalog, filter, seen.as_ref());
        *seen = Some(Arc::clone(&projection));
        Some((catalog, projection))
    }

    /// The configuration this session asked with: its filter, trust and limits.
    pub(crate) const fn config(&self) -> &ServerConfig {
        &self.config
    }

    fn release(&self) {
        if !self.released.swap(true, Ordering::AcqRel) {
            self.station.detach(self.era);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.release();
        self.scope.forget(self.number);
    }
}
