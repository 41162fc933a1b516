//! The classes of `rmcp`'s errors.

use std::{error::Error, fmt, io};

use rmcp::{
    ErrorData,
    model::{ErrorCode, ServerResult},
    service::{ClientInitializeError, ServiceError},
    transport::DynamicTransportError,
};

use crate::{Class, Failure, Phase};

/// In which step of a call `rmcp` returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// From `send_request_with_option`: the request was never handed to the transport.
    NotHanded,
    /// From `await_response`: it was handed over, and nothing more is proven.
    Handed,
}

/// An error with which the server answered.
///
/// `Display` and `Debug` print code and message, not the data, which may repeat the
/// arguments of the call; [`data`](Self::data) has all of it.
#[derive(Clone, PartialEq)]
pub struct ServerError(ErrorData);

// === impl ServerError ===

impl ServerError {
    /// What the server sent.
    #[must_use]
    pub const fn data(&self) -> &ErrorData {
        &self.0
    }

    /// The JSON-RPC error code.
    #[must_use]
    pub const fn code(&self) -> i32 {
        self.0.code.0
    }
}

impl From<ErrorData> for ServerError {
    fn from(data: ErrorData) -> Self {
        Self(data)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.0.message, self.0.code.0)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerError")
            .field("code", &self.0.code.0)
            .field("message", &self.0.message)
            .finish_non_exhaustive()
    }
}

impl Error for ServerError {}

/// What an error of a running connection means for the call it ended.
#[must_use]
pub fn service_failure(error: ServiceError, delivery: Delivery) -> Failure {
    match (error, delivery) {
        (ServiceError::McpError(data), _) => server_failure(data, &[]),
        (error, Delivery::NotHanded) => Failure::new(Class::NotSent)
            .with_phase(Phase::Connect)
            .with_source(error),
        (ServiceError::TransportSend(error), _) => send_failure(error),
        (error @ ServiceError::Timeout { .. }, _) => Failure::new(Class::Timeout)
            .with_phase(Phase::Read)
            .with_source(error),
        (error @ ServiceError::InputRequiredRoundsExceeded { .. }, _) => {
            Failure::new(Class::Answered).with_source(error)
        }
        // Closed, cancelled by the connection, an answer that cannot be read, and what
        // later versions add: sent, and nobody can tell.
        (error, _) => Failure::new(Class::Unknown).with_source(error),
    }
}

/// What an error answer of the server means.
///
/// `busy_codes` are the codes by which *this* server says, before it runs anything,
/// that it is overloaded; the protocol defines none (codes -32000 to -32019 carry no
/// meaning, MCP 2026-07-28, basic, "Error codes").
#[must_use]
pub fn server_failure(data: ErrorData, busy_codes: &[i32]) -> Failure {
    // rmcp makes this answer up when an HTTP session was replaced under a waiting call.
    if data.code == ErrorCode::INTERNAL_ERROR && data.message.contains("re-initialized before") {
        return Failure::new(Class::Unknown).with_source(ServerError(data));
    }
    let code = data.code;
    if busy_codes.contains(&code.0) {
        return Failure::new(Class::Overloaded).with_source(ServerError(data));
    }
    Failure::new(Class::Answered)
        .with_may_have_run(!refused_unread(code))
        .with_source(ServerError(data))
}

/// What a failed handshake means: no call was sent on this connection.
#[must_use]
pub fn initialize_failure(error: ClientInitializeError) -> Failure {
    let not_sent = Failure::new(Class::NotSent).with_phase(Phase::Connect);
    match error {
        ClientInitializeError::JsonRpcError(data) => {
            let code = data.code;
            let failure = not_sent.with_source(ServerError(data));
            if is_permanent(code) {
                failure.with_permanent()
            } else {
                failure
            }
        }
        error @ (ClientInitializeError::NoCompatibleProtocolVersion { .. }
        | ClientInitializeError::NoPreferredProtocolVersion) => {
            not_sent.with_permanent().with_source(error)
        }
        ClientInitializeError::ExpectedInitResult(Some(result)) if !names_version(&result) => {
            not_sent
                .with_permanent()
                .with_source("the server named no protocol version in the handshake")
        }
        // The text of these holds whole messages of the server.
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            not_sent.with_source("the server did not answer the handshake as the protocol says")
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            initialize_failure(*fallback)
        }
        #[cfg(feature = "rmcp-http")]
        ClientInitializeError::TransportError { error, .. } => handshake_send(error),
        error => not_sent.with_source(error),
    }
}

/// A handshake runs nothing, so nothing about it is unknown; but who is refused or told to
/// wait has to know.
#[cfg(feature = "rmcp-http")]
fn handshake_send(error: DynamicTransportError) -> Failure {
    let failure = send_failure(error);
    match failure.class() {
        Class::Answered | Class::Overloaded | Class::NotSent => failure,
        _ => failure
            .with_class(Class::NotSent)
            .with_phase(Phase::Connect),
    }
}

/// Whether a result that is no answer to the handshake at least names a version.
fn names_version(result: &ServerResult) -> bool {
    let ServerResult::CustomResult(result) = result else {
        return false;
    };
    result
        .0
        .get("protocolVersion")
        .is_some_and(serde_json::Value::is_string)
}

/// A send that failed in the transport. Only a local pipe that took no complete line
/// proves anything; an HTTP client reports failed *answers* here too.
fn send_failure(error: DynamicTransportError) -> Failure {
    #[cfg(feature = "rmcp-http")]
    let error = {
        let (name, kind) = (error.transport_name, error.transport_type_id);
        match super::http::over_reqwest(error.error) {
            Ok(failure) => return failure,
            Err(other) => DynamicTransportError::from_parts(name, kind, other),
        }
    };
    let not_sent = error
        .error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| {
            matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected
            )
        });
    if not_sent {
        Failure::new(Class::NotSent)
            .with_phase(Phase::Connect)
            .with_source(error)
    } else {
        Failure::new(Class::Unknown).with_source(error)
    }
}

/// Codes by which a server says that it did not get as far as running the call.
const fn refused_unread(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::PARSE_ERROR
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_PARAMS
            | ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}

/// Codes that answer a handshake for good.
const fn is_permanent(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_PARAMS
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
    )
}
