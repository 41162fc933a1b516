//! One entry of `mcpServers`, field by field.

use std::num::NonZeroU32;

use steadfast_classify::Limits;

use super::{
    bounds,
    draft::{Draft, known_version},
    error::Problem,
    expand::Variables,
    family::Family,
    fields::Fields,
    json::Json,
    oauth::OAuth,
    report::Report,
    server::ServerConfig,
    settings::{CallSettings, Settings},
    words,
};

/// What an entry turned out to be.
pub(crate) enum Entry {
    Server(ServerConfig),
    Disabled,
    /// The report says why.
    Wrong,
}

/// Reads one server. A disabled one is not looked at any further, since a variable
/// that is not set may well be why it was disabled.
pub(crate) fn entry(
    name: &str,
    json: Json,
    variables: Variables<'_>,
    report: &mut Report,
) -> Entry {
    let Some(mut fields) = Fields::new(json, "", variables, report) else {
        return Entry::Wrong;
    };
    let disabled = fields.boolean("disabled") == Some(true);
    let enabled = fields.boolean("enabled") != Some(false);
    if disabled || !enabled {
        return Entry::Disabled;
    }
    let draft = draft(name, &mut fields);
    fields.warn_unknown();
    // One mistake, one message: what is wrong may be why the rest does not fit.
    if !report.errors.is_empty() {
        return Entry::Wrong;
    }
    draft.finish(report).map_or(Entry::Wrong, Entry::Server)
}

fn draft(name: &str, fields: &mut Fields<'_>) -> Draft {
    Draft {
        name: name.to_owned(),
        family: family(fields),
        command: fields.expanded("command"),
        args: fields.secrets("args"),
        env: fields.secret_map("env"),
        cwd: fields.expanded("cwd"),
        url: fields.secret("url"),
        http_url: fields.secret("httpUrl"),
        tcp: fields.secret("tcp"),
        in_process: None,
        headers: fields.secret_map("headers"),
        timeout: fields.millis("timeout", &bounds::LIMIT),
        protocol_version: fields
            .word("protocolVersion", words::PROTOCOLS, "")
            .and_then(known_version),
        oauth: fields.child("oauth").and_then(oauth),
        auth_provider_type: fields.expanded("authProviderType"),
        target_audience: fields.expanded("targetAudience"),
        target_service_account: fields.expanded("targetServiceAccount"),
        trust: fields.boolean("trust").unwrap_or_default(),
        description: fields.text("description"),
        discovery_timeout: fields.millis("discoveryTimeoutMs", &bounds::DISCOVERY),
        include_tools: fields.texts("includeTools"),
        exclude_tools: fields.texts("excludeTools").unwrap_or_default(),
        settings: fields.child("steadfast").map(settings).unwrap_or_default(),
    }
}

fn family(fields: &mut Fields<'_>) -> Option<Family> {
    let family = fields.word("type", words::TYPES, "sse")?;
    if family.is_none() {
        let advice = "\"type\": \"http\", streamable HTTP, which most servers that spoke sse offer";
        return fields.wrong("type", Problem::Sse, advice);
    }
    family
}

fn oauth(mut fields: Fields<'_>) -> Option<OAuth> {
    let enabled = fields.boolean("enabled");
    let oauth = OAuth {
        client_id: fields.secret("clientId"),
        client_secret: fields.secret("clientSecret"),
        scopes: fields.texts("scopes").into_iter().flatten().collect(),
        audiences: fields.texts("audiences").into_iter().flatten().collect(),
        authorization_url: fields.secret("authorizationUrl"),
        token_url: fields.secret("tokenUrl"),
        redirect_uri: fields.secret("redirectUri"),
        token_param_name: fields.secret("tokenParamName"),
        registration_url: fields.secret("registrationUrl"),
    };
    fields.warn_unknown();
    match enabled {
        Some(false) => None,
        enabled => oauth.normal(enabled == Some(true)),
    }
}

fn settings(mut fields: Fields<'_>) -> Settings {
    let max_in_flight = fields.whole("max_in_flight", &bounds::IN_FLIGHT);
    let max_in_flight = max_in_flight.and_then(|calls| u32::try_from(calls).ok());
    let settings = Settings {
        shared: fields.boolean("shared"),
        max_in_flight: max_in_flight.and_then(NonZeroU32::new),
        idempotency: fields
            .word("idempotency", words::IDEMPOTENCY, "")
            .unwrap_or_default(),
        calls: call_settings(&mut fields),
        tools: fields
            .children("tools", |mut fields| {
                let calls = call_settings(&mut fields);
                fields.refuse_unknown();
                calls
            })
            .into_iter()
            .collect(),
    };
    fields.refuse_unknown();
    settings
}

fn call_settings(fields: &mut Fields<'_>) -> CallSettings {
    CallSettings {
        limits: fields.child("limits").map(limits).unwrap_or_default(),
        long: fields.boolean("long"),
        effect: fields.word("effect", words::EFFECTS, ""),
        cacheable: fields.boolean("cacheable"),
    }
}

fn limits(mut fields: Fields<'_>) -> Limits {
    let mut limits = Limits::new();
    limits.connect = fields.millis("connect_ms", &bounds::LIMIT);
    limits.read = fields.millis("read_ms", &bounds::LIMIT);
    limits.attempt = fields.millis("attempt_ms", &bounds::LIMIT);
    limits.total = fields.millis("total_ms", &bounds::LIMIT);
    let retries = fields.whole("max_retries", &bounds::RETRIES);
    limits.max_retries = retries.and_then(|retries| u32::try_from(retries).ok());
    fields.refuse_unknown();
    limits
}
