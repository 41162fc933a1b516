//! What a single value must look like.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

use super::{
    error::{Note, Problem},
    family::Family,
    report::Report,
};

pub(crate) const URLS: &str = "an address that starts with http://, https://, ws:// or wss://";

const HEADER: &str = "a header name of letters, digits and !#$%&'*+-.^_`|~";

/// Headers that belong to the transport. Many files set `accept` by hand, and what they
/// set is right or wrong by the protocol's version, which they cannot know.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The family that the scheme of `url` names, if it is an address at all.
pub(crate) fn scheme(url: &str) -> Result<Family, Problem> {
    let (scheme, rest) = url.split_once("://").ok_or(Problem::NoScheme)?;
    let family = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => Family::Http,
        "ws" | "wss" => Family::WebSocket,
        _ => return Err(Problem::UnknownScheme),
    };
    if url
        .chars()
        .any(|char| char.is_whitespace() || char.is_control())
    {
        return Err(Problem::Character);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Err(Problem::NoHost);
    }
    Ok(family)
}

/// Text that is handed to the operating system cannot hold a NUL.
pub(crate) fn no_nul(field: &str, text: &str, report: &mut Report) {
    if text.contains('\0') {
        report.error(field, Problem::Character, "text without NUL");
    }
}

/// The environment as a map, each name once.
pub(crate) fn env(
    entries: Vec<(String, SecretString)>,
    report: &mut Report,
) -> BTreeMap<String, SecretString> {
    let mut env = BTreeMap::new();
    for (name, value) in entries {
        let at = format!("env.{name}");
        no_nul(&at, value.expose_secret(), report);
        if name.is_empty() || name.contains(['=', '\0']) {
            report.error(&at, Problem::Character, "a name without = and NUL");
        }
        if env.insert(name, value).is_some() {
            report.error(&at, Problem::Duplicate, "each name once");
        }
    }
    env
}

/// The headers as a map by lower-case name, each once, without the transport's own.
pub(crate) fn headers(
    entries: Vec<(String, SecretString)>,
    report: &mut Report,
) -> BTreeMap<String, SecretString> {
    let mut headers = BTreeMap::new();
    for (name, value) in entries {
        let at = format!("headers.{name}");
        let name = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token) {
            report.error(&at, Problem::Character, HEADER);
        } else if !value.expose_secret().bytes().all(is_header_text) {
            report.error(&at, Problem::Character, "printable ASCII");
        } else if is_own(&name) {
            report.warn(&at, Note::OwnHeader);
        } else if headers.insert(name, value).is_some() {
            report.error(&at, Problem::Duplicate, "each header once, in any case");
        }
    }
    headers
}

/// Whether the transport sets this header itself, or the protocol by what a call says.
fn is_own(name: &str) -> bool {
    OWN_HEADERS.contains(&name)
        || name.starts_with("mcp-param-")
        || name.starts_with("sec-websocket-")
}

/// RFC 9110, section 5.6.2.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~'
        )
}

const fn is_header_text(byte: u8) -> bool {
    byte == b'\t' || (b' ' <= byte && byte <= b'~')
}
