//! Bodies of responses.

use std::time::Duration;

use http::{HeaderMap, header::CONTENT_TYPE};
use reqwest::Response;
use tokio::time::timeout;

/// The longest answer, or event of a stream, that is read.
pub(super) const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// How much of the body of an error is read, and how long that may take.
const MAX_ERROR: usize = 64 * 1024;
const ERROR_WITHIN: Duration = Duration::from_secs(2);

/// How much is read of a response that nobody needs any more, and for how long, so that
/// its connection can be used again.
const MAX_REST: usize = 64 * 1024;
const REST_WITHIN: Duration = Duration::from_millis(250);

/// What a body is, by its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    Events,
    Other,
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum ReadError {
    Broken(reqwest::Error),
    TooLarge,
}

// === impl Kind ===

impl Kind {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(kind) = headers.get(CONTENT_TYPE) else {
            // It says so itself, or it does not.
            return Self::Json;
        };
        let kind = kind.to_str().unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// Reads a whole body, if it is no longer than `max` bytes.
pub(super) async fn read(mut response: Response, max: usize) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    if response
        .content_length()
        .is_some_and(|length| length > max as u64)
    {
        return Err(ReadError::TooLarge);
    }
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
        if body.len() + chunk.len() > max {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// As much of an error's body as there is, and as is worth reading.
pub(super) async fn read_error(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= MAX_ERROR {
                return;
            }
        }
    };
    // What is known by then will do: the status says the most.
    let _ = timeout(ERROR_WITHIN, reading).await;
    body
}

/// Reads what is left of a response, so that its connection can be used again; gives up
/// the connection where that takes too much.
pub(super) async fn drain(mut response: Response) {
    let mut left = MAX_REST;
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let Some(rest) = left.checked_sub(chunk.len()) else {
                return;
            };
            left = rest;
        }
    };
    let _ = timeout(REST_WITHIN, reading).await;
}
