//! What happened to one attempt, and in which part of it.

use std::fmt;

use crate::Effect;

/// What happened to one attempt, judged once, next to the wire.
///
/// The class says what is *known*; whether the call may be repeated follows from it
/// and from the call's [`Effect`], see [`Class::may_repeat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The request provably never left: connecting, resolving, spawning or the
    /// handshake failed, or it was withdrawn from the queue before its first byte.
    NotSent,
    /// The server refused before running it (HTTP 429, or a busy code the user lists).
    Overloaded,
    /// Sent, and no answer came in time.
    Timeout,
    /// Sent, and then the link broke or the answer could not be read: nobody can tell
    /// whether it ran.
    Unknown,
    /// The server answered, with an error. It is alive.
    Answered,
    /// One of our own layers said no: the circuit is open, the budget is used up, the
    /// pool is draining.
    Rejected,
    /// The caller cancelled.
    Cancelled,
}

/// The part of a call in which its time ran out or its failure happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// From the call to its first byte on the wire, readiness and start-up included.
    Connect,
    /// From the first byte sent, or the last progress, to the answer.
    Read,
    /// One whole attempt.
    Attempt,
    /// The whole logical call, all attempts and waits.
    Total,
    /// While our own side kept it waiting: for a free place on the connection, or for
    /// somebody's answer to what the server asked ([`Flight::hold`](crate::Flight::hold)).
    /// It says nothing about the server, whatever limit it was that passed.
    Held,
    /// The server did not know the session that it came in any more, and turned it away
    /// unread. The server is alive, and the next attempt finds a new session.
    Session,
}

// === impl Class ===

impl Class {
    /// Whether a call with this effect may be sent again after an attempt that ended
    /// in this class.
    ///
    /// `Timeout` and `Unknown` may be repeated only where repeating is harmless;
    /// `Answered`, `Rejected` and `Cancelled` never are.
    #[must_use]
    pub const fn may_repeat(self, effect: Effect) -> bool {
        match self {
            Self::NotSent | Self::Overloaded => true,
            Self::Timeout | Self::Unknown => effect.is_repeatable(),
            Self::Answered | Self::Rejected | Self::Cancelled => false,
        }
    }

    /// Whether an attempt that ended in this class may have run on the server, as far
    /// as the class alone can tell.
    #[must_use]
    pub const fn may_have_run(self) -> bool {
        match self {
            Self::NotSent | Self::Overloaded | Self::Rejected => false,
            Self::Timeout | Self::Unknown | Self::Answered | Self::Cancelled => true,
        }
    }

    /// The name used in logs, metrics and results, in `snake_case`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
            Self::Answered => "answered",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Phase ===

impl Phase {
    /// The name used in logs, metrics and results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Attempt => "attempt",
            Self::Total => "total",
            Self::Held => "held",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
