//! What failures on the way to a WebSocket mean.

use std::{error::Error, fmt, io};

use steadfast_classify::{Class, Failure, Phase};
use tokio_tungstenite::tungstenite;

/// A WebSocket that could not be opened, for a reason below HTTP or in the upgrade itself.
///
/// Its source is the error underneath, as the type it has. Found with
/// [`Failure::find_source`](steadfast_classify::Failure::find_source).
#[derive(Debug)]
pub struct WebSocketFailed {
    what: &'static str,
    cause: Box<dyn Error + Send + Sync>,
}

// === impl WebSocketFailed ===

impl fmt::Display for WebSocketFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl Error for WebSocketFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

fn not_sent(what: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
    let cause = cause.into();
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_source(WebSocketFailed { what, cause })
}

/// No name, no connection, no agreement on encryption. A certificate that is not to be
/// trusted will not be by trying again.
pub(super) fn unreachable(error: io::Error) -> Failure {
    let certificate = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)));
    let failure = not_sent("the server could not be reached", error);
    if certificate {
        failure.with_permanent()
    } else {
        failure
    }
}

/// TLS cannot even be tried.
pub(super) fn insecure(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
    not_sent("TLS cannot be spoken with the server", error).with_permanent()
}

/// A configuration by which nothing can be reached.
pub(super) fn unusable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
    not_sent("the server's configuration is of no use", error).with_permanent()
}

/// What came instead of an answer to the upgrade.
pub(super) fn not_upgraded(error: tungstenite::Error) -> Failure {
    use tungstenite::error::ProtocolError::{
        HandshakeIncomplete, HttparseError, JunkAfterRequest, ResetWithoutClosingHandshake,
    };

    match error {
        tungstenite::Error::Io(error) => unreachable(error),
        // It broke off, or it is no HTTP: neither is its word for good.
        error @ tungstenite::Error::Protocol(
            HandshakeIncomplete
            | HttparseError(_)
            | JunkAfterRequest
            | ResetWithoutClosingHandshake,
        ) => not_sent("the server did not answer the upgrade", error),
        error @ tungstenite::Error::Protocol(_) => {
            not_sent("the server does not speak MCP over a WebSocket", error).with_permanent()
        }
        error => not_sent("the server did not answer the upgrade", error),
    }
}
