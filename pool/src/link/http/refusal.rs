//! Handshakes that failed in HTTP.

use rmcp::model::ErrorCode;
use steadfast_classify::{Failure, mcp::ServerError};

use crate::HttpRefused;

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
