//! One server, checked and ready to be used.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rmcp::model::ProtocolVersion;
use steadfast_classify::{Effect, Limits};

use super::{
    effect::ToolHints,
    endpoint::Endpoint,
    family::{Family, SharedFamilies},
    filter::Filter,
    oauth::OAuth,
    settings::{IdempotencyPolicy, LimitTable, Settings},
};

/// One MCP server: where it is, who may share it, and what its calls may take.
///
/// It comes from the `mcpServers` JSON that MCP clients use ([`ConfigFile`]), or from
/// code ([`stdio`](Self::stdio), [`http`](Self::http), [`websocket`](Self::websocket),
/// [`in_process`](Self::in_process)).
/// It is checked when it is made and never changes, and a clone costs one reference
/// count. `Debug` shows no secret: nothing of the arguments, the environment, the
/// address, the headers and `oauth`.
///
/// ```
/// use steadfast_pool::{Family, ServerConfig};
///
/// # fn main() -> Result<(), steadfast_pool::ConfigErrors> {
/// let files = ServerConfig::stdio("files", "npx")
///     .arg("-y")
///     .arg("@modelcontextprotocol/server-filesystem")
///     .env("ROOT", "/srv")
///     .build()?;
/// assert_eq!(files.family(), Family::Stdio);
/// # Ok(())
/// # }
/// ```
///
/// [`ConfigFile`]: crate::ConfigFile
#[derive(Clone)]
pub struct ServerConfig(Arc<Checked>);

struct Checked {
    parts: Parts,
    limits: LimitTable,
    fingerprint: OnceLock<[u8; 32]>,
}

pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) identity: Identity,
    pub(crate) per_session: PerSession,
}

/// What makes two servers of one name different servers: all of it is in the key.
pub(crate) struct Identity {
    pub(crate) endpoint: Endpoint,
    pub(crate) timeout: Option<Duration>,
    pub(crate) protocol_version: Option<ProtocolVersion>,
    pub(crate) oauth: Option<OAuth>,
    pub(crate) auth_provider_type: Option<String>,
    pub(crate) target_audience: Option<String>,
    pub(crate) target_service_account: Option<String>,
}

/// What sessions may see differently on one connection: none of it is in the key.
pub(crate) struct PerSession {
    pub(crate) trust: bool,
    pub(crate) description: Option<String>,
    pub(crate) discovery_timeout: Option<Duration>,
    pub(crate) filter: Filter,
    pub(crate) settings: Settings,
}

// === impl ServerConfig ===

impl ServerConfig {
    pub(crate) fn new(parts: Parts) -> Self {
        let limits = LimitTable::new(&parts.per_session.settings, parts.identity.timeout);
        Self(Arc::new(Checked {
            parts,
            limits,
            fingerprint: OnceLock::new(),
        }))
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    pub(crate) fn fingerprint_cell(&self) -> &OnceLock<[u8; 32]> {
        &self.0.fingerprint
    }

    /// The name, unique in its file.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.parts().name
    }

    /// Where the server is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.parts().identity.endpoint
    }

    /// The kind of transport.
    #[must_use]
    pub fn family(&self) -> Family {
        self.endpoint().family()
    }

    /// How to log in; `None` if OAuth is off.
    #[must_use]
    pub fn oauth(&self) -> Option<&OAuth> {
        self.parts().identity.oauth.as_ref()
    }

    /// `timeout`: how long a call to this server may wait for its answer, before
    /// anything in `steadfast` replaces it.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.parts().identity.timeout
    }

    /// `protocolVersion`: the version of the protocol to speak with the server; `None`
    /// negotiates one.
    #[must_use]
    pub fn protocol_version(&self) -> Option<&ProtocolVersion> {
        self.parts().identity.protocol_version.as_ref()
    }

    /// `authProviderType`.
    #[must_use]
    pub fn auth_provider_type(&self) -> Option<&str> {
        self.parts().identity.auth_provider_type.as_deref()
    }

    /// `targetAudience`.
    #[must_use]
    pub fn target_audience(&self) -> Option<&str> {
        self.parts().identity.target_audience.as_deref()
    }

    /// `targetServiceAccount`.
    #[must_use]
    pub fn target_service_account(&self) -> Option<&str> {
        self.parts().identity.target_service_account.as_deref()
    }

    /// `description`.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.parts().per_session.description.as_deref()
    }

    /// `discoveryTimeoutMs`: how long starting the server and listing its tools may
    /// take, 100 ms to 300 s; `None` is the pool's default for the family.
    #[must_use]
    pub fn discovery_timeout(&self) -> Option<Duration> {
        self.parts().per_session.discovery_timeout
    }

    /// `trust`: whether the tools' annotations are believed. The default is not.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.parts().per_session.trust
    }

    /// `includeTools` and `excludeTools`.
    #[must_use]
    pub fn filter(&self) -> &Filter {
        &self.parts().per_session.filter
    }

    /// The tools that it names, and whether it is a filter that does: one for prompts too.
    pub(crate) fn named_tools(&self) -> impl Iterator<Item = (&str, bool)> {
        let filter = self.filter().named().map(|name| (name, true));
        let settings = self.settings().tools.keys();
        filter.chain(settings.map(|name| (&**name, false)))
    }

    /// Whether sessions share one connection: what `steadfast.shared` says, else what
    /// `defaults` says for the family. A server in this process is never shared.
    #[must_use]
    pub fn is_shared(&self, defaults: SharedFamilies) -> bool {
        defaults.shares(self.family(), self.settings().shared)
    }

    /// How many calls may run at once on one connection; `None` is the pool's default
    /// for the family.
    #[must_use]
    pub fn max_in_flight(&self) -> Option<NonZeroU32> {
        self.settings().max_in_flight
    }

    /// What to do about idempotency keys.
    #[must_use]
    pub fn idempotency(&self) -> IdempotencyPolicy {
        self.settings().idempotency
    }

    /// The limits of calls to `tool`, merged: the tool's over the server's over
    /// [`timeout`](Self::timeout). `None` if none is set. It was merged when the
    /// configuration was made; asking costs a look-up and one reference count.
    #[must_use]
    pub fn limits_for(&self, tool: &str) -> Option<Arc<Limits>> {
        self.0.limits.of(tool)
    }

    /// Whether calls to `tool` are long tasks.
    #[must_use]
    pub fn is_long(&self, tool: &str) -> bool {
        self.settings()
            .of(tool, |calls| calls.long)
            .unwrap_or(false)
    }

    /// Whether an old answer of `tool` is acceptable; `None` leaves that to what the
    /// call does: only read-only calls are kept.
    #[must_use]
    pub fn cacheable(&self, tool: &str) -> Option<bool> {
        self.settings().of(tool, |calls| calls.cacheable)
    }

    /// What a call to `tool` does: what is set for the tool, else for the server, else
    /// what the tool's annotations say if the server is trusted, else
    /// [`Effect::NonIdempotent`]. A tool's name proves nothing.
    ///
    /// With [`IdempotencyPolicy::Deduplicated`], what is not set is at least
    /// [`Effect::Idempotent`].
    #[must_use]
    pub fn effect_for(&self, tool: &str, hints: Option<ToolHints>) -> Effect {
        if let Some(set) = self.settings().of(tool, |calls| calls.effect) {
            return set;
        }
        let believed = hints.filter(|_| self.is_trusted());
        let effect = believed.map_or(Effect::NonIdempotent, ToolHints::effect);
        if effect == Effect::NonIdempotent && self.idempotency() == IdempotencyPolicy::Deduplicated
        {
            return Effect::Idempotent;
        }
        effect
    }

    fn settings(&self) -> &Settings {
        &self.parts().per_session.settings
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("name", self.name())
            .field("family", &self.family())
            .finish_non_exhaustive()
    }
}
