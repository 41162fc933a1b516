//! The server that a wire goes to, and what is sent to it with every request.

use std::{fmt, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, InvalidHeaderName, InvalidHeaderValue},
};
use reqwest::{Client, Url};
use secrecy::ExposeSecret;

use super::Credentials;
use crate::Remote;

/// An address, and what goes with every request to it.
pub(crate) struct Target {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) credentials: Option<Arc<Credentials>>,
}

/// An address that no request can be made to. None of these holds a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidTarget {
    #[error("the address of the server is not valid: {0}")]
    Url(#[from] UrlError),
    #[error("the header {0:?} has no valid name")]
    Name(String, #[source] InvalidHeaderName),
    #[error("the header {0:?} has no valid value")]
    Value(String, #[source] InvalidHeaderValue),
    #[error("the address holds a login, and the headers have an `authorization` too")]
    TwoLogins,
}

/// Why an address cannot be read. It does not hold the address.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UrlError(String);

// === impl Target ===

impl Target {
    /// A server, reached by `client`. A login in the address becomes basic authentication.
    pub(crate) fn new(client: Client, url: Url, remote: &Remote) -> Result<Self, InvalidTarget> {
        let mut target = Self {
            client,
            url,
            headers: HeaderMap::new(),
            credentials: None,
        };
        for (name, value) in &remote.headers {
            let header = HeaderName::try_from(name.as_str());
            let header = header.map_err(|error| InvalidTarget::Name(name.clone(), error))?;
            let value = HeaderValue::try_from(value.expose_secret());
            let value = value.map_err(|error| InvalidTarget::Value(name.clone(), error))?;
            target.insert(header, value);
        }
        target.move_login()?;
        target.url.set_fragment(None);
        Ok(target)
    }

    /// Asks for a token, unless the configuration says itself how to log in.
    pub(crate) fn with_credentials(mut self, credentials: Option<Arc<Credentials>>) -> Self {
        self.credentials = credentials.filter(|_| !self.headers.contains_key(AUTHORIZATION));
        self
    }

    fn insert(&mut self, name: HeaderName, mut value: HeaderValue) {
        value.set_sensitive(true);
        self.headers.insert(name, value);
    }

    /// Moves a login from the address, which is logged and repeated in many places, to a
    /// header.
    fn move_login(&mut self) -> Result<(), InvalidTarget> {
        if self.url.username().is_empty() && self.url.password().is_none() {
            return Ok(());
        }
        if self.headers.contains_key(AUTHORIZATION) {
            return Err(InvalidTarget::TwoLogins);
        }
        let login = format!(
            "{}:{}",
            unescape(self.url.username()),
            unescape(self.url.password().unwrap_or_default())
        );
        let basic = format!("Basic {}", BASE64_STANDARD.encode(login));
        let value = HeaderValue::try_from(basic)
            .map_err(|error| InvalidTarget::Value(AUTHORIZATION.to_string(), error))?;
        self.insert(AUTHORIZATION, value);
        // An address that has a login can also be without.
        let _ = self.url.set_password(None);
        let _ = self.url.set_username("");
        Ok(())
    }
}

/// The address of a server.
pub(crate) fn url(remote: &Remote) -> Result<Url, InvalidTarget> {
    Url::parse(remote.url.expose_secret())
        .map_err(|error| InvalidTarget::Url(UrlError(error.to_string())))
}

/// Undoes `%41` and the like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_of_an_address_is_unescaped() {
        for (escaped, plain) in [("a%40b", "a@b"), ("100%", "100%"), ("%zz", "%zz"), ("", "")] {
            assert_eq!(unescape(escaped), plain);
        }
    }
}
