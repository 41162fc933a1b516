//! What the failures of HTTP mean for the request that met them.

use std::{error::Error, fmt, io};

use steadfast_classify::{Class, Failure, Phase};

/// An exchange over HTTP that failed below HTTP: no connection, or one that broke.
///
/// Its source is the error of the client, without the address. Found with
/// [`Failure::find_source`](steadfast_classify::Failure::find_source).
#[derive(Debug)]
pub struct HttpFailed {
    what: &'static str,
    cause: reqwest::Error,
}

/// An answer that is none: HTTP was fine, what it carried was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the server's response ended without an answer")]
    Ended,
    #[error("the server took the request and promised no answer (HTTP {0})")]
    Accepted(u16),
    #[error("the server's response is neither JSON nor a stream of events")]
    NotJson,
    #[error("the server's response is no answer to the request")]
    Foreign,
    #[error("the server's answer is longer than {max} bytes")]
    TooLarge { max: usize },
    #[error("the server's response broke off, and could not be resumed")]
    NotResumed,
    #[error("the server's response broke off, and resuming it was refused (HTTP {0})")]
    ResumeRefused(u16),
}

/// The session that a request belongs to is not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server has forgotten the session")]
struct SessionExpired;

// === impl HttpFailed ===

impl HttpFailed {
    pub(super) fn new(what: &'static str, cause: reqwest::Error) -> Self {
        Self {
            what,
            // It may hold a token.
            cause: cause.without_url(),
        }
    }

    /// Whether no connection could be made: refused, no such host, no answer in time, no
    /// agreement on encryption.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        self.cause.is_connect()
    }
}

impl fmt::Display for HttpFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, root(&self.cause))
    }
}

impl Error for HttpFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// What a request that got no response means, given whether it was `begun` to be sent.
pub(super) fn unanswered(error: reqwest::Error, begun: bool) -> Failure {
    if begun {
        return Failure::new(Class::Unknown)
            .with_source(HttpFailed::new("the connection broke off", error));
    }
    let bad_certificate = is_bad_certificate(&error);
    let what = if error.is_timeout() {
        "the server could not be reached in time"
    } else {
        "the server could not be reached"
    };
    let failure = not_sent(HttpFailed::new(what, error));
    if bad_certificate {
        failure.with_permanent()
    } else {
        failure
    }
}

/// A request that was turned away with its session.
pub(super) fn expired() -> Failure {
    not_sent(SessionExpired).with_phase(Phase::Session)
}

pub(super) fn not_sent(source: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_source(source)
}

/// The innermost cause: the others only repeat in which layer it was met.
fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> + 'a {
    std::iter::successors(Some(error), |&error| {
        // An `io::Error` hides the error in it: its source is that one's source.
        let inside = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match inside {
            Some(inside) => Some(inside as _),
            None => error.source(),
        }
    })
}

/// A certificate that is not good now is not good in a second.
fn is_bad_certificate(error: &reqwest::Error) -> bool {
    causes(error)
        .filter_map(|error| error.downcast_ref::<rustls::Error>())
        .any(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
}
