//! How a remote server wants its caller to log in.

use std::{collections::BTreeSet, fmt};

use secrecy::{ExposeSecret, SecretString};

/// The `oauth` block of a remote server.
///
/// An absent block, `null`, `{}` and `"enabled": false` are all "no OAuth". A block
/// that has any other field is on without `"enabled": true`: two sessions that differ
/// only in a client secret must never share a connection because a flag was forgotten.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OAuth {
    /// `clientId`.
    pub client_id: Option<SecretString>,
    /// `clientSecret`.
    pub client_secret: Option<SecretString>,
    /// `scopes`; their order has no meaning.
    pub scopes: BTreeSet<String>,
    /// `audiences`; their order has no meaning.
    pub audiences: BTreeSet<String>,
    /// `authorizationUrl`.
    pub authorization_url: Option<SecretString>,
    /// `tokenUrl`.
    pub token_url: Option<SecretString>,
    /// `redirectUri`.
    pub redirect_uri: Option<SecretString>,
    /// `tokenParamName`.
    pub token_param_name: Option<SecretString>,
    /// `registrationUrl`.
    pub registration_url: Option<SecretString>,
}

// === impl OAuth ===

impl OAuth {
    /// This block with empty texts taken out; `None` if nothing is left and it was not
    /// `enabled` by word.
    pub(crate) fn normal(mut self, enabled: bool) -> Option<Self> {
        let Self {
            client_id,
            client_secret,
            scopes,
            audiences,
            authorization_url,
            token_url,
            redirect_uri,
            token_param_name,
            registration_url,
        } = &mut self;
        let texts = [
            client_id,
            client_secret,
            authorization_url,
            token_url,
            redirect_uri,
            token_param_name,
            registration_url,
        ];
        let mut says_something = enabled || !scopes.is_empty() || !audiences.is_empty();
        for text in texts {
            text.take_if(|text| text.expose_secret().is_empty());
            says_something |= text.is_some();
        }
        says_something.then_some(self)
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}
