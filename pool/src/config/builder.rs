//! A configuration made in code.

use std::{fmt, num::NonZeroU32, time::Duration};

use rmcp::model::ProtocolVersion;
use secrecy::SecretString;
use steadfast_classify::{Effect, Limits};

use super::{
    draft::Draft,
    error::{ConfigErrors, ConfigWarning},
    oauth::OAuth,
    report::Report,
    server::ServerConfig,
    settings::{CallSettings, IdempotencyPolicy},
};

/// Makes a [`ServerConfig`] in code; [`build`](Self::build) checks it.
#[derive(Clone)]
#[must_use]
pub struct ServerConfigBuilder(Draft);

// === impl ServerConfigBuilder ===

impl ServerConfigBuilder {
    pub(crate) const fn new(draft: Draft) -> Self {
        Self(draft)
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// Everything that is wrong: an empty name or command, an address without a scheme,
    /// a name that cannot be a header, a limit out of range, and whatever has no effect,
    /// such as a header for a server that is a program.
    pub fn build(self) -> Result<ServerConfig, ConfigErrors> {
        let mut report = Report::new(None, Some(&self.0.name));
        let config = self.0.finish(&mut report);
        let mut errors = report.errors;
        errors.extend(report.warnings.into_iter().map(ConfigWarning::into_error));
        config
            .filter(|_| errors.is_empty())
            .ok_or_else(|| ConfigErrors::new(errors))
    }

    /// Adds an argument for the program.
    pub fn arg(mut self, arg: impl Into<SecretString>) -> Self {
        self.0.args.push(arg.into());
        self
    }

    /// Adds arguments for the program.
    pub fn args(mut self, args: impl IntoIterator<Item: Into<SecretString>>) -> Self {
        self.0.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to the program's environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.0.env.push((name.into(), value.into()));
        self
    }

    /// Sets the program's working directory.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.0.cwd = Some(cwd.into());
        self
    }

    /// Adds a header to each request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.0.headers.push((name.into(), value.into()));
        self
    }

    /// Sets how long a call may wait for its answer, 1 ms to 7 days. It is part of the
    /// key: sessions that differ in it do not share a connection. `limits` is not.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = Some(timeout);
        self
    }

    /// Sets how long starting the server and listing its tools may take, 100 ms to
    /// 300 s.
    pub const fn discovery_timeout(mut self, timeout: Duration) -> Self {
        self.0.discovery_timeout = Some(timeout);
        self
    }

    /// Sets the version of the protocol to speak, which is negotiated otherwise. It is part
    /// of the key.
    pub fn protocol_version(mut self, version: ProtocolVersion) -> Self {
        self.0.protocol_version = Some(version);
        self
    }

    /// Turns OAuth on, with these fields.
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.0.oauth = oauth.normal(true);
        self
    }

    /// Sets `authProviderType`.
    pub fn auth_provider_type(mut self, provider: impl Into<String>) -> Self {
        self.0.auth_provider_type = Some(provider.into());
        self
    }

    /// Sets `targetAudience`.
    pub fn target_audience(mut self, audience: impl Into<String>) -> Self {
        self.0.target_audience = Some(audience.into());
        self
    }

    /// Sets `targetServiceAccount`.
    pub fn target_service_account(mut self, account: impl Into<String>) -> Self {
        self.0.target_service_account = Some(account.into());
        self
    }

    /// Says whether the tools' annotations are believed.
    pub const fn trust(mut self, trust: bool) -> Self {
        self.0.trust = trust;
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.0.description = Some(description.into());
        self
    }

    /// Lets only these tools pass; see [`Filter`](crate::Filter).
    pub fn include_tools(mut self, tools: impl IntoIterator<Item: Into<String>>) -> Self {
        self.0.include_tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Keeps these tools out; see [`Filter`](crate::Filter).
    pub fn exclude_tools(mut self, tools: impl IntoIterator<Item: Into<String>>) -> Self {
        self.0.exclude_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Says whether sessions share one connection. A server that keeps state per
    /// connection must not be shared.
    pub const fn shared(mut self, shared: bool) -> Self {
        self.0.settings.shared = Some(shared);
        self
    }

    /// Sets how many calls may run at once on one connection.
    pub const fn max_in_flight(mut self, calls: NonZeroU32) -> Self {
        self.0.settings.max_in_flight = Some(calls);
        self
    }

    /// Sets what to do about idempotency keys.
    pub const fn idempotency(mut self, policy: IdempotencyPolicy) -> Self {
        self.0.settings.idempotency = policy;
        self
    }

    /// Sets the limits of all calls, each 1 ms to 7 days.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.0.settings.calls.limits = limits;
        self
    }

    /// Says whether all calls are long tasks; see [`CallSettings::long`].
    pub const fn long(mut self, long: bool) -> Self {
        self.0.settings.calls.long = Some(long);
        self
    }

    /// Sets what all calls do, whatever the tools' annotations say.
    pub const fn effect(mut self, effect: Effect) -> Self {
        self.0.settings.calls.effect = Some(effect);
        self
    }

    /// Says whether old answers are acceptable.
    pub const fn cacheable(mut self, cacheable: bool) -> Self {
        self.0.settings.calls.cacheable = Some(cacheable);
        self
    }

    /// Sets what goes for the calls of one tool.
    pub fn tool(mut self, name: impl Into<String>, calls: CallSettings) -> Self {
        self.0.settings.tools.insert(name.into(), calls);
        self
    }
}

impl fmt::Debug for ServerConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfigBuilder")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}
