//! A configuration before it is checked: the one way from JSON and from code.

use std::{num::NonZeroU32, time::Duration};

use rmcp::model::ProtocolVersion;
use secrecy::SecretString;
use steadfast_classify::Limits;

use super::{
    bounds::{self, Bounds},
    error::Problem,
    family::Family,
    filter::Filter,
    in_process::InProcess,
    oauth::OAuth,
    report::Report,
    resolve,
    server::{Identity, Parts, PerSession, ServerConfig},
    settings::Settings,
    words,
};

/// Everything that may be said about a server, whether it fits together or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) family: Option<Family>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<SecretString>,
    pub(crate) env: Vec<(String, SecretString)>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<SecretString>,
    pub(crate) http_url: Option<SecretString>,
    pub(crate) tcp: Option<SecretString>,
    /// Only ever said in code.
    pub(crate) in_process: Option<InProcess>,
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) protocol_version: Option<ProtocolVersion>,
    pub(crate) oauth: Option<OAuth>,
    pub(crate) auth_provider_type: Option<String>,
    pub(crate) target_audience: Option<String>,
    pub(crate) target_service_account: Option<String>,
    pub(crate) trust: bool,
    pub(crate) description: Option<String>,
    pub(crate) discovery_timeout: Option<Duration>,
    pub(crate) include_tools: Option<Vec<String>>,
    pub(crate) exclude_tools: Vec<String>,
    pub(crate) settings: Settings,
}

// === impl Draft ===

impl Draft {
    /// Checks the draft. What is wrong goes into `report`; `None` if anything is.
    pub(crate) fn finish(mut self, report: &mut Report) -> Option<ServerConfig> {
        if self.name.is_empty() {
            report.error("name", Problem::Empty, "any text");
        }
        self.check_numbers(report);
        self.check_version(report);
        let endpoint = resolve::endpoint(&mut self, report)?;
        if !report.errors.is_empty() {
            return None;
        }
        let parts = Parts {
            name: self.name.into(),
            identity: Identity {
                endpoint,
                timeout: self.timeout,
                protocol_version: self.protocol_version,
                oauth: self.oauth,
                auth_provider_type: present(self.auth_provider_type),
                target_audience: present(self.target_audience),
                target_service_account: present(self.target_service_account),
            },
            per_session: PerSession {
                trust: self.trust,
                description: self.description,
                discovery_timeout: self.discovery_timeout,
                filter: Filter::new(self.include_tools, self.exclude_tools),
                settings: self.settings,
            },
        };
        Some(ServerConfig::new(parts))
    }

    fn check_version(&self, report: &mut Report) {
        let version = self.protocol_version.as_ref();
        if version.is_some_and(|version| known_version(version.as_str()).is_none()) {
            let allowed = words::list(words::PROTOCOLS, "");
            report.error("protocolVersion", Problem::Unknown, allowed);
        }
    }

    /// JSON was checked when it was read; this is for what was said in code.
    fn check_numbers(&self, report: &mut Report) {
        let settings = &self.settings;
        check_duration("timeout", self.timeout, &bounds::LIMIT, report);
        check_duration(
            "discoveryTimeoutMs",
            self.discovery_timeout,
            &bounds::DISCOVERY,
            report,
        );
        check_limits("steadfast", &settings.calls.limits, report);
        for (name, tool) in &settings.tools {
            check_limits(&format!("steadfast.tools.{name}"), &tool.limits, report);
        }
        let calls = settings.max_in_flight.map(NonZeroU32::get);
        check_count("steadfast.max_in_flight", calls, &bounds::IN_FLIGHT, report);
    }
}

/// A version of the protocol that this crate speaks.
pub(crate) fn known_version(text: &str) -> Option<ProtocolVersion> {
    let spoken = words::find(text, words::PROTOCOLS)?;
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    known.find(|version| version.as_str() == spoken).cloned()
}

fn check_limits(path: &str, limits: &Limits, report: &mut Report) {
    for (field, limit) in [
        ("connect_ms", limits.connect),
        ("read_ms", limits.read),
        ("attempt_ms", limits.attempt),
        ("total_ms", limits.total),
    ] {
        let at = format!("{path}.limits.{field}");
        check_duration(&at, limit, &bounds::LIMIT, report);
    }
    let at = format!("{path}.limits.max_retries");
    check_count(&at, limits.max_retries, &bounds::RETRIES, report);
}

fn check_duration(at: &str, value: Option<Duration>, bounds: &Bounds, report: &mut Report) {
    if value.is_some_and(|value| !bounds.hold_duration(value)) {
        report.error(at, Problem::OutOfRange, bounds.allowed());
    }
}

fn check_count(at: &str, value: Option<u32>, bounds: &Bounds, report: &mut Report) {
    if value.is_some_and(|value| !bounds.hold(value.into())) {
        report.error(at, Problem::OutOfRange, bounds.allowed());
    }
}

/// An empty text is the same as none.
fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
