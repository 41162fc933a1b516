//! Responses that are no success.

use std::{error::Error, fmt, time::Duration};

use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};
#[cfg(feature = "http")]
use rmcp::model::ErrorCode;
use rmcp::model::{ErrorData, RequestId};
use serde::Deserialize;
use serde_json::Value;
use steadfast_classify::{
    Class, Failure,
    http::{is_refused_unread, retry_after},
    mcp::{ServerError, server_failure},
};

use super::Hush;

/// How much of a server's own words is kept, in characters.
const WORDS: usize = 200;

/// An HTTP response that was no success, and what the server said with it.
///
/// `Display` has the status and the first words of the body. Found with
/// [`Failure::find_source`](steadfast_classify::Failure::find_source); a JSON-RPC error in
/// the body is found as [`ServerError`] too.
#[derive(Clone)]
pub struct HttpRefused {
    status: StatusCode,
    challenge: Option<String>,
    words: Option<String>,
    error: Option<ServerError>,
}

/// What a response without success looked like.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Its body, as far as it was read.
    pub(crate) body: Vec<u8>,
    /// What of it is not to be quoted.
    pub(crate) hush: Hush,
}

/// A body that holds a JSON-RPC error.
#[derive(Deserialize)]
struct RpcError {
    #[serde(default)]
    id: Value,
    error: ErrorData,
}

// === impl HttpRefused ===

impl HttpRefused {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The challenge of a 401 or 403, its `WWW-Authenticate` header: what to log in with,
    /// and where.
    #[must_use]
    pub fn challenge(&self) -> Option<&str> {
        self.challenge.as_deref()
    }

    /// The first words of the body, if it was text.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        self.words.as_deref()
    }
}

impl fmt::Display for HttpRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered with HTTP status {}", self.status)?;
        match (&self.error, &self.words) {
            (Some(error), _) => write!(f, ": {error}"),
            (None, Some(words)) => write!(f, ": {words}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for HttpRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRefused")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Error for HttpRefused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}

// === impl Refusal ===

impl Refusal {
    /// What it means for the request with this id.
    pub(crate) fn judge(&self, id: &RequestId) -> Failure {
        let answers = self.answers(id);
        let error = self.rpc().map(|rpc| rpc.error);
        let failure = match &error {
            // An answer, but a gateway's status: never to be repeated, and no proof that
            // nothing ran.
            Some(error) if answers && self.status.is_server_error() => {
                server_failure(error.clone(), &[]).with_may_have_run(true)
            }
            // What it did not find may be anything.
            Some(error) if answers && self.status == StatusCode::NOT_FOUND => {
                server_failure(error.clone(), &[])
            }
            _ => self.by_status(),
        };
        let failure = match self.retry_after() {
            Some(wait) => failure.with_retry_after(wait),
            None => failure,
        };
        failure.with_source(self.source(error))
    }

    /// Whether its body is a JSON-RPC error that answers the request with this id.
    pub(crate) fn answers(&self, id: &RequestId) -> bool {
        let rpc = self.rpc();
        rpc.is_some_and(|rpc| serde_json::to_value(id).is_ok_and(|id| id == rpc.id))
    }

    /// Whether it answers the request with this id by saying that there is no such method.
    #[cfg(feature = "http")]
    pub(crate) fn lacks_method(&self, id: &RequestId) -> bool {
        let rpc = self.rpc().filter(|_| self.answers(id));
        rpc.is_some_and(|rpc| rpc.error.code == ErrorCode::METHOD_NOT_FOUND)
    }

    fn rpc(&self) -> Option<RpcError> {
        serde_json::from_slice(&self.body).ok()
    }

    fn by_status(&self) -> Failure {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => Failure::new(Class::Overloaded),
            status if status.is_server_error() => Failure::new(Class::Unknown),
            status => Failure::new(Class::Answered).with_may_have_run(!is_refused_unread(status)),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let told = self.status.is_server_error() || self.status == StatusCode::TOO_MANY_REQUESTS;
        told.then(|| retry_after(&self.headers)).flatten()
    }

    fn source(&self, mut error: Option<ErrorData>) -> HttpRefused {
        let text = String::from_utf8_lossy(&self.body);
        if let Some(error) = &mut error {
            error.message = self.hush.hide(&error.message).into();
        }
        HttpRefused {
            status: self.status,
            challenge: challenge(&self.headers),
            words: words(&self.headers, &self.hush.hide(&text)),
            error: error.map(ServerError::from),
        }
    }
}

/// The challenge of a response.
pub(super) fn challenge(headers: &HeaderMap) -> Option<String> {
    let challenges: Vec<_> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    (!challenges.is_empty()).then(|| challenges.join(", "))
}

/// The first words of a body that is text for people.
fn words(headers: &HeaderMap, text: &str) -> Option<String> {
    let kind = headers.get(http::header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.contains("html") {
        return None;
    }
    let words: String = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|char| !char.is_control())
        .take(WORDS)
        .collect();
    (!words.is_empty()).then_some(words)
}
