//! Handshakes that failed in HTTP.

use rmcp::model::ErrorCode;
use steadfast_classify::{Class, Failure, Phase, mcp::ServerError};

use crate::HttpRefused;

/// Statuses of the client's fault that may pass by themselves.
const PASSING: &[u16] = &[408, 409, 423, 425];

/// What the failure of a handshake's request means for the connection. Nothing was called
/// by it, so nothing about it is unknown; but who is refused, or told to wait, has to know.
pub(in crate::link) fn refused(refusal: Failure) -> Failure {
    let status = refusal
        .find_source::<HttpRefused>()
        .map(HttpRefused::status);
    match (refusal.class(), status) {
        // The same request would be refused again.
        (Class::Answered, Some(401 | 403)) => refusal.with_may_have_run(false).with_permanent(),
        (Class::Answered, Some(status)) if PASSING.contains(&status) => not_sent(refusal),
        (Class::Answered, Some(300..500)) => not_sent(refusal).with_permanent(),
        (Class::Answered, None) => refusal.with_may_have_run(false).with_permanent(),
        (Class::Answered | Class::Unknown | Class::Timeout, _) => not_sent(refusal),
        _ => refusal,
    }
}

fn not_sent(failure: Failure) -> Failure {
    failure
        .with_class(Class::NotSent)
        .with_phase(Phase::Connect)
}

/// Whether a server that refused `initialize` may be one that knows no handshake.
pub(super) fn speaks_other(failure: &Failure) -> bool {
    let status = failure
        .find_source::<HttpRefused>()
        .map(HttpRefused::status);
    let code = failure.find_source::<ServerError>().map(ServerError::code);
    let unknown = [
        ErrorCode::METHOD_NOT_FOUND.0,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0,
    ];
    matches!(status, Some(400 | 404 | 405)) || code.is_some_and(|code| unknown.contains(&code))
}
