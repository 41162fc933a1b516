//! What HTTP requests and responses mean.
//!
//! The method decides the effect of a request (RFC 9110, section 9.2), an
//! `Idempotency-Key` header makes a POST repeatable, and the context lives in the
//! extensions.

use std::{
    error::Error,
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, Method, Request, Response, StatusCode, header::RETRY_AFTER};

use crate::{Call, CallContext, Class, Effect, Failure};

/// The name of the header that makes a POST or PATCH repeatable.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A response that means a failure, kept so that whoever handles the failure can still
/// read it.
///
/// Found with [`Failure::find_source`].
pub struct RefusedResponse<B> {
    status: StatusCode,
    response: Mutex<Option<Response<B>>>,
}

// === impl Call ===

impl<B> Call for Request<B> {
    fn effect(&self) -> Effect {
        match *self.method() {
            Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => Effect::ReadOnly,
            Method::PUT | Method::DELETE => Effect::Idempotent,
            _ if self.headers().contains_key(IDEMPOTENCY_KEY) => Effect::Idempotent,
            _ => Effect::NonIdempotent,
        }
    }

    fn context(&self) -> Option<&CallContext> {
        self.extensions().get()
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(self.extensions_mut().get_or_insert_default())
    }
}

/// Judges an HTTP response by its status: 429 is [`Class::Overloaded`], any 5xx is
/// [`Class::Unknown`] (a gateway's 503 does not prove that nothing ran), both with the
/// server's `Retry-After`; everything else is an answer and stays `Ok`.
///
/// # Errors
///
/// A failure that still holds the response, as [`RefusedResponse`].
pub fn classify_response<B>(response: Response<B>) -> Result<Response<B>, Failure>
where
    B: Send + 'static,
{
    let status = response.status();
    let class = match status {
        StatusCode::TOO_MANY_REQUESTS => Class::Overloaded,
        status if status.is_server_error() => Class::Unknown,
        _ => return Ok(response),
    };
    let wait = retry_after(response.headers());
    let failure = Failure::new(class).with_source(RefusedResponse {
        status,
        response: Mutex::new(Some(response)),
    });
    Err(match wait {
        Some(wait) => failure.with_retry_after(wait),
        None => failure,
    })
}

/// Statuses by which a server says that it did not get as far as running the request.
/// Redirects that are not followed belong to them, but for 303, by which a server says
/// where to look for what came of a POST that it ran (RFC 9110, section 15.4.4), and 302,
/// which many use for that.
#[must_use]
pub const fn is_refused_unread(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        300 | 301
            | 304..=308
            | 400..=407
            | 411
            | 413..=415
            | 417
            | 421
            | 426
            | 428
            | 431
    )
}

/// How long a `Retry-After` header asks to wait from now, in either of its forms:
/// seconds, or an HTTP date (RFC 9110, section 10.2.3). `None` if there is no header or
/// it cannot be read; zero for a date that has passed.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    #[allow(
        clippy::disallowed_methods,
        reason = "an HTTP date is wall-clock time, and there is no other clock to compare it with"
    )]
    let now = SystemTime::now();
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

/// Reads the value of a `Retry-After` header as seen at `now`.
#[must_use]
pub fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are as good as for ever.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

// === impl RefusedResponse ===

impl<B> RefusedResponse<B> {
    /// The status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Takes the response out; `None` if somebody already has.
    #[must_use]
    pub fn take(&self) -> Option<Response<B>> {
        self.response
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl<B> fmt::Debug for RefusedResponse<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl<B> fmt::Display for RefusedResponse<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP status {}", self.status)
    }
}

impl<B> Error for RefusedResponse<B> {}
