//! Who shares a connection with whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, LazyLock},
};

use rmcp::model::ProtocolVersion;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::config::{Endpoint, Identity, OAuth, Parts, PerSession, Program, Remote, ServerConfig};

/// Two sessions that ask with equal keys may be given one connection.
///
/// A key is a server's name and a digest of everything that defines its transport:
/// command, arguments, environment, working directory, address, headers, `timeout`,
/// `protocolVersion`, `oauth` and the other fields about credentials, and, if the session has one, its
/// isolation tag. What sessions may see differently on one connection is not in it:
/// filters, trust, description, start time, and everything under `steadfast`.
///
/// Configurations that mean the same have the same key: the order of the environment,
/// of headers, scopes and audiences does not count, nor does the case of a header's
/// name, and what is absent, `null` or empty is the same.
///
/// `Debug` shows the name and nothing of the digest, and the digest is keyed with a
/// secret of this process: if one ever leaks, nobody can test guesses of a password
/// against it elsewhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    name: Arc<str>,
    fingerprint: [u8; 32],
}

// === impl Key ===

impl Key {
    /// The key of `config` for sessions with this isolation tag.
    #[must_use]
    pub fn new(config: &ServerConfig, isolation: Option<&str>) -> Self {
        let fingerprint = *config
            .fingerprint_cell()
            .get_or_init(|| of_parts(config.parts()));
        Self {
            name: Arc::clone(config.name()),
            fingerprint: match isolation {
                None => fingerprint,
                Some(tag) => isolated(&fingerprint, tag),
            },
        }
    }

    /// A key that is nobody else's: that of `config` for the one session with this number.
    pub(crate) fn private(config: &ServerConfig, session: u64) -> Self {
        let Self { name, fingerprint } = Self::new(config, None);
        let mut digest = KeyedDigest::new("private");
        digest.bytes(&fingerprint);
        digest.bytes(&session.to_le_bytes());
        Self {
            name,
            fingerprint: digest.finish(),
        }
    }

    /// The server's name.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

// Nothing below uses `..` in a pattern: a field that is added to the configuration does
// not compile until somebody decided whether it splits connections.

fn of_parts(parts: &Parts) -> [u8; 32] {
    let Parts {
        name,
        identity:
            Identity {
                endpoint,
                timeout,
                protocol_version,
                oauth,
                auth_provider_type,
                target_audience,
                target_service_account,
            },
        per_session:
            PerSession {
                trust: _,
                description: _,
                discovery_timeout: _,
                filter: _,
                settings: _,
            },
    } = parts;
    let mut digest = KeyedDigest::new("server");
    digest.text(name);
    digest.endpoint(endpoint);
    let nanos = timeout.map(|timeout| timeout.as_nanos().to_string());
    digest.optional(nanos.as_deref());
    digest.optional(protocol_version.as_ref().map(ProtocolVersion::as_str));
    digest.oauth(oauth.as_ref());
    digest.optional(auth_provider_type.as_deref());
    digest.optional(target_audience.as_deref());
    digest.optional(target_service_account.as_deref());
    digest.finish()
}

fn isolated(fingerprint: &[u8; 32], tag: &str) -> [u8; 32] {
    let mut digest = KeyedDigest::new("isolated");
    digest.bytes(fingerprint);
    digest.text(tag);
    digest.finish()
}

/// SHA-256 of the process's secret and what it is fed. Each part goes in behind its
/// length or its count, so that no two different inputs run together.
struct KeyedDigest(Sha256);

// === impl KeyedDigest ===

impl KeyedDigest {
    fn new(purpose: &str) -> Self {
        let mut digest = Self(Sha256::new_with_prefix(*PROCESS_SECRET));
        digest.text(purpose);
        digest
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    fn endpoint(&mut self, endpoint: &Endpoint) {
        match endpoint {
            Endpoint::Stdio(Program {
                command,
                args,
                env,
                cwd,
            }) => {
                self.text("stdio");
                self.text(command);
                self.count(args.len());
                for arg in args {
                    self.secret(arg);
                }
                self.secret_map(env);
                let cwd = cwd.as_deref().map(|cwd| cwd.as_os_str().as_encoded_bytes());
                self.bytes(cwd.unwrap_or_default());
            }
            Endpoint::WebSocket(remote) => self.remote("websocket", remote),
            Endpoint::Http(remote) => self.remote("http", remote),
            Endpoint::InProcess(server) => {
                self.text("in_process");
                self.bytes(&server.number().to_le_bytes());
            }
        }
    }

    fn remote(&mut self, family: &str, Remote { url, headers }: &Remote) {
        self.text(family);
        self.secret(url);
        self.secret_map(headers);
    }

    fn oauth(&mut self, oauth: Option<&OAuth>) {
        self.count(usize::from(oauth.is_some()));
        let Some(OAuth {
            client_id,
            client_secret,
            scopes,
            audiences,
            authorization_url,
            token_url,
            redirect_uri,
            token_param_name,
            registration_url,
        }) = oauth
        else {
            return;
        };
        self.set(scopes);
        self.set(audiences);
        for text in [
            client_id,
            client_secret,
            authorization_url,
            token_url,
            redirect_uri,
            token_param_name,
            registration_url,
        ] {
            self.optional(text.as_ref().map(|text| text.expose_secret()));
        }
    }

    fn secret_map(&mut self, map: &BTreeMap<String, SecretString>) {
        self.count(map.len());
        for (name, value) in map {
            self.text(name);
            self.secret(value);
        }
    }

    fn set(&mut self, set: &BTreeSet<String>) {
        self.count(set.len());
        for text in set {
            self.text(text);
        }
    }

    fn optional(&mut self, text: Option<&str>) {
        self.count(usize::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn secret(&mut self, secret: &SecretString) {
        self.text(secret.expose_secret());
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }
}

/// 128 bits of the operating system's randomness, spread over 256. The standard
/// library's hash keys are enough for what never leaves the process, cannot fail here,
/// and need no crate.
static PROCESS_SECRET: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    secret
});
