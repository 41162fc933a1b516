//! One agent session's scope in a pool.

use std::{fmt, sync::Arc};

use futures::future::join_all;
use steadfast_classify::Failure;

use crate::{AskHandler, Lease, ServerConfig, SlotsFull, observe, seat::Scope, shared::Shared};

/// One agent session's scope in a pool: everything it leased is given up with it.
///
/// Closing it, or dropping it, releases its leases and no others; its running calls are
/// cancelled on the wire, and nothing can be attached to it any more, whatever is still
/// being started for it.
pub struct Session {
    scope: Arc<Scope>,
    pool: Arc<Shared>,
    isolation: Option<Arc<str>>,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(id: Arc<str>, pool: Arc<Shared>) -> Self {
        Self {
            scope: Scope::new(id),
            pool,
            isolation: None,
        }
    }

    /// Shares connections only with sessions of the same tag: a user, a workspace.
    /// Default: with all.
    #[must_use]
    pub fn with_isolation(mut self, tag: impl Into<Arc<str>>) -> Self {
        self.isolation = Some(tag.into());
        self
    }

    /// Says who answers what servers ask of this session: its user, its model. Say it before
    /// the first lease, and once: what a connection announces is fixed when it is made.
    ///
    /// A connection that is this session's own announces what `handler`
    /// [offers](AskHandler::offers). A shared one announces nothing of it, since another
    /// session may hold it too; what a server asks over it all the same comes here if it is
    /// proven to be about a call of this session, and is refused otherwise. To have a server
    /// ask, give the session a connection of its own: `"shared": false` in its
    /// configuration. Default: everything is refused.
    #[must_use]
    pub fn with_handler(self, handler: impl AskHandler) -> Self {
        self.scope.set_handler(Arc::new(handler));
        self
    }

    /// The name this session was opened with.
    #[must_use]
    pub fn id(&self) -> &Arc<str> {
        self.scope.id()
    }

    /// A seat at the server, at once. The first call on it starts the server where it
    /// does not run, so that a failed start is a failed *call*, with its retries and its
    /// fallback.
    ///
    /// # Errors
    ///
    /// If the session is closed or the pool is draining.
    pub fn lease(&self, config: &ServerConfig) -> Result<Lease, Failure> {
        let seat = self.scope.seat(config, || {
            self.pool
                .attach(config, &self.scope, self.isolation.as_deref())
        })?;
        seat.station().check_names(config);
        Ok(Lease::new(seat))
    }

    /// A seat at a server that runs: starts it, or waits for whoever is starting it.
    ///
    /// # Errors
    ///
    /// If the server could not be started within its start limit (`NotSent`), no slot is
    /// free, the session was closed or the pool is draining (`Rejected`).
    ///
    /// # Cancel safety
    ///
    /// Dropped early it gives up its seat. The start goes on while somebody else waits
    /// for it; with the last waiter it is called off and what was started is killed.
    pub async fn acquire(&self, config: &ServerConfig) -> Result<Lease, Failure> {
        let lease = self.try_acquire(config).await;
        self.tell_refused([(config.name(), &lease)]);
        lease
    }

    /// The same for many servers at once. One that is missing or slow does not hold up
    /// or take down the others: each result stands for itself, in the order of `configs`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_all<'a>(
        &self,
        configs: impl IntoIterator<Item = &'a ServerConfig>,
    ) -> Vec<(Arc<str>, Result<Lease, Failure>)> {
        let acquires = configs.into_iter().map(async |config| {
            let lease = self.try_acquire(config).await;
            (Arc::clone(config.name()), lease)
        });
        let leases = join_all(acquires).await;
        self.tell_refused(leases.iter().map(|(server, lease)| (server, lease)));
        leases
    }

    async fn try_acquire(&self, config: &ServerConfig) -> Result<Lease, Failure> {
        let lease = self.lease(config)?;
        lease.ready().await?;
        Ok(lease)
    }

    /// Tells of what got no slot, all of it together.
    fn tell_refused<'a>(
        &self,
        leases: impl IntoIterator<Item = (&'a Arc<str>, &'a Result<Lease, Failure>)>,
    ) {
        let mut full = None;
        let refused = leases.into_iter().filter_map(|(server, lease)| {
            full = Some(lease.as_ref().err()?.find_source::<SlotsFull>()?.limit);
            Some(Arc::clone(server))
        });
        let refused: Vec<_> = refused.collect();
        if let Some(limit) = full {
            observe::slots_refused(self.pool.events(), self.id(), refused, limit);
        }
    }

    /// Gives up every lease of this session. What [`Drop`] does too.
    pub fn close(&self) {
        self.scope.close();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
