//! The classes of the errors of `rmcp`'s own HTTP transport.

use std::{
    error::Error,
    time::{Duration, SystemTime},
};

use http::StatusCode;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};

use crate::{
    Class, Failure, Phase,
    http::{is_refused_unread, parse_retry_after},
};

type BoxError = Box<dyn Error + Send + Sync>;

/// What an error of `rmcp`'s streamable HTTP transport means for the request it ended.
///
/// `rmcp` reports nearly everything up to the last byte of an answer as a failed send, so
/// only what cannot have reached the server is [`Class::NotSent`]. `never_sent` says that
/// of an error of the HTTP client: for `reqwest` it is
/// [`is_connect`](reqwest::Error::is_connect), which covers DNS, TCP and TLS.
///
/// | error | class |
/// |---|---|
/// | of the client, never sent; an expired session; a failed re-initialization | `NotSent` |
/// | 429 | `Overloaded`, with `Retry-After` |
/// | 5xx, an answer that cannot be read or ended early, everything else | `Unknown` |
/// | 401, 403, any other 4xx or 3xx, an answer beyond the size limit | `Answered` |
/// | a header that is reserved | `NotSent`, permanent |
#[must_use]
pub fn http_failure<E>(
    error: StreamableHttpError<E>,
    never_sent: impl FnOnce(&E) -> bool,
) -> Failure
where
    E: Error + Send + Sync + 'static,
{
    let failure = match &error {
        StreamableHttpError::Client(client) if never_sent(client) => not_sent(),
        StreamableHttpError::SessionExpired | StreamableHttpError::ReinitializationFailed(_) => {
            not_sent()
        }
        StreamableHttpError::ReservedHeaderConflict(_) => not_sent().with_permanent(),
        StreamableHttpError::HttpStatus(status) => status_failure(status),
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            refused()
        }
        StreamableHttpError::UnexpectedServerResponse(text) => return told(text),
        // It came, so it ran.
        StreamableHttpError::ResponseBodyTooLarge { .. } => Failure::new(Class::Answered),
        // An answer that cannot be read, a channel that closed, and what later versions add.
        _ => Failure::new(Class::Unknown),
    };
    failure.with_source(error)
}

/// A status other than those that have an error of their own.
fn status_failure(error: &HttpStatusError) -> Failure {
    let failure = match error.status {
        429 => Failure::new(Class::Overloaded),
        status => by_status(status),
    };
    match error.retry_after.as_deref().and_then(wait) {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    }
}

/// Statuses for which `rmcp` has no error of their own stand in the text of this one, and
/// after them a part of the body, which may repeat what was asked or answered.
fn told(text: &str) -> Failure {
    let status = text
        .strip_prefix("HTTP ")
        .and_then(|rest| rest.split(' ').next())
        .and_then(|code| code.trim_end_matches(':').parse::<u16>().ok());
    match status {
        Some(status) => by_status(status).with_source(format!("HTTP status {status}")),
        None => {
            Failure::new(Class::Unknown).with_source("the answer is no message of the protocol")
        }
    }
}

fn by_status(status: u16) -> Failure {
    match StatusCode::from_u16(status) {
        Ok(code) if (300..500).contains(&status) => {
            Failure::new(Class::Answered).with_may_have_run(!is_refused_unread(code))
        }
        _ => Failure::new(Class::Unknown),
    }
}

fn not_sent() -> Failure {
    Failure::new(Class::NotSent).with_phase(Phase::Connect)
}

fn refused() -> Failure {
    Failure::new(Class::Answered).with_may_have_run(false)
}

fn wait(value: &str) -> Option<Duration> {
    #[allow(
        clippy::disallowed_methods,
        reason = "an HTTP date is wall-clock time, and there is no other clock to compare it with"
    )]
    let now = SystemTime::now();
    parse_retry_after(value, now)
}

/// The failure of a send, if it comes from `rmcp`'s transport over `reqwest`. The address,
/// whose query may hold a token, is taken out of it.
pub(super) fn over_reqwest(error: BoxError) -> Result<Failure, BoxError> {
    let error = error.downcast::<StreamableHttpError<reqwest::Error>>()?;
    let error = match *error {
        StreamableHttpError::Client(client) => StreamableHttpError::Client(client.without_url()),
        other => other,
    };
    Ok(http_failure(error, reqwest::Error::is_connect))
}
