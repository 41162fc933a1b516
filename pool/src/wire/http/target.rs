//! The server that a wire goes to, and what is sent to it with every request.

use std::{fmt, sync::Arc};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, InvalidHeaderName, InvalidHeaderValue},
};
use reqwest::{Client, Url};
use secrecy::ExposeSecret;

use super::Credentials;
use crate::{Remote, wire::Login};

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

    /// Moves a login from the address to a header.
    fn move_login(&mut self) -> Result<(), InvalidTarget> {
        let Some(login) = Login::take(&mut self.url) else {
            return Ok(());
        };
        if self.headers.contains_key(AUTHORIZATION) {
            return Err(InvalidTarget::TwoLogins);
        }
        self.insert(AUTHORIZATION, login.into_header());
        Ok(())
    }
}

/// The address of a server.
pub(crate) fn url(remote: &Remote) -> Result<Url, InvalidTarget> {
    Url::parse(remote.url.expose_secret())
        .map_err(|error| InvalidTarget::Url(UrlError(error.to_string())))
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").finish_non_exhaustive()
    }
}
