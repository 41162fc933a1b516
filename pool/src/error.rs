//! The reasons for which the pool itself refuses or puts off.

use std::{error::Error, fmt};

use steadfast_classify::{Class, Failure, Phase};

/// There is no connection yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotYet {
    /// Why the last connection, or the last attempt to get one, ended.
    pub last: Option<Failure>,
    /// Whether so many attempts failed that only one is made from time to time.
    pub failed: bool,
}

/// The pool takes no more calls for this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The pool is draining, or has been drained.
    #[error("the pool is draining")]
    Draining,
    /// The server was taken out of the pool.
    #[error("the server was removed from the pool")]
    Retired,
    /// The session was closed.
    #[error("the session is closed")]
    SessionClosed,
    /// The session's filter keeps the tool or prompt out.
    #[error("excluded by the configuration of this session")]
    Excluded,
    /// The server said which tools it has and that it tells when they change, and this
    /// is none of them.
    #[error("the server has no such tool")]
    NoSuchTool,
    /// The tool runs only as a task, and the server did not announce tasks of a kind that
    /// can be followed.
    #[error("the tool runs only as a task, and the server has none that can be followed")]
    NeedsTasks,
}

// === impl NotYet ===

impl fmt::Display for NotYet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.failed {
            "the server keeps failing"
        } else {
            "the connection is not there yet"
        })?;
        match self.last.as_ref().and_then(Error::source) {
            Some(last) => write!(f, " ({last})"),
            None => Ok(()),
        }
    }
}

impl Error for NotYet {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|last| last as _)
    }
}

/// `permanent` tells a fallback that this is not a fault of the server's that an older
/// answer could hide.
pub(crate) fn refused(why: Refused) -> Failure {
    let failure = Failure::new(Class::Rejected)
        .with_layer("pool")
        .with_source(why);
    match why {
        Refused::SessionClosed | Refused::Excluded | Refused::NoSuchTool | Refused::NeedsTasks => {
            failure.with_permanent()
        }
        Refused::Draining | Refused::Retired => failure,
    }
}

/// Connections are tasks, and what waits for them has a limit.
pub(crate) fn no_runtime() -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_permanent()
        .with_layer("pool")
        .with_source("a connection can only be made within a tokio runtime")
}
