//! What a pool goes by.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use crate::{
    Family, Root, SharedFamilies, SlotMode,
    entry::{Respawn, Rules},
    process::Grace,
};

/// What a pool goes by. Every value has a default; [`Pool::new`](crate::Pool::new) checks
/// them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolSettings {
    /// How long a connection that nobody holds any more is kept. Default 30 s: longer
    /// than an agent thinks between two steps, short enough not to pile up.
    pub grace: Duration,
    /// How long a connection may go without a holder in all, however often somebody comes
    /// and goes; holding it for one `grace` without a gap starts the count anew. Default
    /// 5 min. To pin a server, hold a lease.
    pub max_idle: Duration,
    /// How long a server that is a program may take to start and list its tools, counted
    /// from its spawn. Default 30 s: a cold `npx` downloads first.
    pub start_timeout_local: Duration,
    /// The same for a server that is reached over a network, or lives in this program.
    /// Default 5 s.
    pub start_timeout_remote: Duration,
    /// The pauses between attempts to get back what is lost: a program, a WebSocket, or a
    /// server in this program. Default: at once, then 5 s three times, then one attempt
    /// per 30 s.
    pub respawn_local: Respawn,
    /// The same for HTTP servers. Default: at once, then 1, 2, 4, 8 and 16 s, then one
    /// attempt per 30 s.
    pub respawn_remote: Respawn,
    /// How many servers may be starting at once. Default: twice the number of processors,
    /// since starting is mostly waiting for the disk and for downloads.
    pub max_starting: NonZeroUsize,
    /// Whether the number of servers that run at once is limited. Default: it is not.
    pub slots: SlotMode,
    /// Which families of servers are shared by sessions unless a configuration says
    /// otherwise. Default: programs and WebSockets; not HTTP, whose headers may carry one
    /// user's credentials.
    pub shared: SharedFamilies,
    /// How long a server is given to end by itself, and after `SIGTERM`, before it is
    /// killed. Default 2 s each.
    pub closing: Grace,
    /// How many calls may run at once on one HTTP connection, unless its configuration
    /// says otherwise; more wait for their turn, which counts as connecting, but not against
    /// the server ([`Phase::Held`](steadfast_classify::Phase::Held)). Default 16,
    /// the number of requests that its client makes at once: what waits above it can be
    /// taken back, what waits in it cannot. The other families have no such limit of
    /// their own.
    pub max_in_flight_http: NonZeroU32,
    /// Whether connections that are held but not called are asked for a sign of life.
    /// Default: they are not; the end of a process or of a connection is noticed without.
    pub keepalive: Option<Keepalive>,
    /// The places that servers may work in, if they ask. Default: none is said, and a server
    /// that asks is told that it cannot.
    pub roots: Option<Vec<Root>>,
}

/// How connections that are held but not called are asked for a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keepalive {
    /// How often.
    pub every: Duration,
    /// How long an answer may take; any answer will do, an error too. Without one the
    /// connection counts as lost; but a server that never answered one is asked for its
    /// tools first, and if it lists them it is just not pinged any more.
    pub answer: Duration,
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pool setting `{field}` must be {allowed}")]
pub struct InvalidPoolSettings {
    field: &'static str,
    allowed: &'static str,
}

// === impl PoolSettings ===

impl Default for PoolSettings {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            grace: Duration::from_secs(30),
            max_idle: Duration::from_secs(300),
            start_timeout_local: Duration::from_secs(30),
            start_timeout_remote: Duration::from_secs(5),
            respawn_local: Respawn::local(),
            respawn_remote: Respawn::remote(),
            max_starting: processors.saturating_mul(NonZeroUsize::MIN.saturating_add(1)),
            slots: SlotMode::default(),
            shared: SharedFamilies::default(),
            closing: Grace::default(),
            max_in_flight_http: NonZeroU32::MIN.saturating_add(15),
            keepalive: None,
            roots: None,
        }
    }
}

impl PoolSettings {
    /// Sets how long a connection that nobody holds any more is kept.
    #[must_use]
    pub const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long a connection may go without a holder in all.
    #[must_use]
    pub const fn with_max_idle(mut self, max_idle: Duration) -> Self {
        self.max_idle = max_idle;
        self
    }

    /// Sets how long the start of a server that is a program may take.
    #[must_use]
    pub const fn with_start_timeout_local(mut self, limit: Duration) -> Self {
        self.start_timeout_local = limit;
        self
    }

    /// Sets how long the start of a server that is reached over a network may take.
    #[must_use]
    pub const fn with_start_timeout_remote(mut self, limit: Duration) -> Self {
        self.start_timeout_remote = limit;
        self
    }

    /// Sets the pauses between attempts to get a lost program or WebSocket back.
    #[must_use]
    pub fn with_respawn_local(mut self, respawn: Respawn) -> Self {
        self.respawn_local = respawn;
        self
    }

    /// Sets the pauses between attempts to get a lost HTTP server back.
    #[must_use]
    pub fn with_respawn_remote(mut self, respawn: Respawn) -> Self {
        self.respawn_remote = respawn;
        self
    }

    /// Sets how many servers may be starting at once.
    #[must_use]
    pub const fn with_max_starting(mut self, max_starting: NonZeroUsize) -> Self {
        self.max_starting = max_starting;
        self
    }

    /// Sets whether the number of servers that run at once is limited.
    #[must_use]
    pub const fn with_slots(mut self, slots: SlotMode) -> Self {
        self.slots = slots;
        self
    }

    /// Sets which families of servers are shared by default.
    #[must_use]
    pub const fn with_shared(mut self, shared: SharedFamilies) -> Self {
        self.shared = shared;
        self
    }

    /// Sets how long a server is given to end.
    #[must_use]
    pub const fn with_closing(mut self, closing: Grace) -> Self {
        self.closing = closing;
        self
    }

    /// Sets how many calls may run at once on one HTTP connection.
    #[must_use]
    pub const fn with_max_in_flight_http(mut self, limit: NonZeroU32) -> Self {
        self.max_in_flight_http = limit;
        self
    }

    /// Sets the places that servers may work in.
    #[must_use]
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = Some(roots.into_iter().collect());
        self
    }

    /// Sets whether connections that are not called are asked for a sign of life.
    #[must_use]
    pub const fn with_keepalive(mut self, keepalive: Keepalive) -> Self {
        self.keepalive = Some(keepalive);
        self
    }

    pub(crate) fn check(&self) -> Result<(), InvalidPoolSettings> {
        let positive = [
            ("max_idle", self.max_idle),
            ("start_timeout_local", self.start_timeout_local),
            ("start_timeout_remote", self.start_timeout_remote),
            ("respawn_local.cooldown", self.respawn_local.cooldown),
            ("respawn_remote.cooldown", self.respawn_remote.cooldown),
        ];
        let pings = self.keepalive.iter().flat_map(|keepalive| {
            let Keepalive { every, answer } = *keepalive;
            [("keepalive.every", every), ("keepalive.answer", answer)]
        });
        if let Some((field, _)) = positive
            .into_iter()
            .chain(pings)
            .find(|(_, value)| value.is_zero())
        {
            return Err(InvalidPoolSettings {
                field,
                allowed: "longer than zero",
            });
        }
        match self.slots {
            SlotMode::Warn(0) | SlotMode::Enforce(0) => Err(InvalidPoolSettings {
                field: "slots",
                allowed: "at least 1, or off",
            }),
            SlotMode::Off | SlotMode::Warn(_) | SlotMode::Enforce(_) => Ok(()),
        }
    }

    pub(crate) fn rules(&self, family: Family, private: bool) -> Rules {
        let respawn = match family {
            Family::Http => self.respawn_remote.clone(),
            _ => self.respawn_local.clone(),
        };
        // Nobody else may ever come for a connection that is one session's own.
        let grace = if private { Duration::ZERO } else { self.grace };
        Rules {
            grace,
            max_idle: self.max_idle,
            respawn,
        }
    }

    pub(crate) const fn max_in_flight(&self, family: Family) -> Option<NonZeroU32> {
        match family {
            Family::Http => Some(self.max_in_flight_http),
            Family::Stdio | Family::WebSocket | Family::InProcess => None,
        }
    }

    pub(crate) const fn start_timeout(&self, family: Family) -> Duration {
        match family {
            Family::Stdio => self.start_timeout_local,
            _ => self.start_timeout_remote,
        }
    }
}

// === impl Keepalive ===

impl Keepalive {
    /// Asks this often, and waits 10 s for an answer.
    #[must_use]
    pub const fn new(every: Duration) -> Self {
        Self {
            every,
            answer: Duration::from_secs(10),
        }
    }

    /// Sets how long an answer may take.
    #[must_use]
    pub const fn with_answer(mut self, answer: Duration) -> Self {
        self.answer = answer;
        self
    }
}

// === impl InvalidPoolSettings ===

impl InvalidPoolSettings {
    /// The setting.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }
}
