//! The headers of each message.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::model::{ClientRequest, GetMeta as _, JsonRpcMessage, ProtocolVersion};

use super::{super::exchange::Tx, params::Params, session::Session};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// For a message in the body of a POST.
pub(super) fn of_message(message: &Tx, session: Option<&Session>, params: &Params) -> HeaderMap {
    let mut headers = of_session(session);
    headers.insert(ACCEPT, BOTH);
    headers.insert(CONTENT_TYPE, JSON);
    if let JsonRpcMessage::Request(request) = message {
        let request = &request.request;
        // Without a handshake each request says itself which version it is of.
        if let Some(version) = request.get_meta().protocol_version() {
            insert(&mut headers, PROTOCOL_VERSION, version.as_str());
            if version >= ProtocolVersion::STANDARD_HEADERS {
                describe(&mut headers, request, params);
            }
        }
    }
    headers
}

/// For a GET that opens a stream of events, behind `last_id` if that is given.
pub(super) fn of_stream(session: Option<&Session>, last_id: Option<&str>) -> HeaderMap {
    let mut headers = of_session(session);
    headers.insert(ACCEPT, EVENTS);
    if let Some(id) = last_id
        && let Ok(id) = HeaderValue::from_bytes(id.as_bytes())
    {
        headers.insert(LAST_EVENT_ID, id);
    }
    headers
}

/// For a request that is about the session as a whole.
pub(super) fn of_session(session: Option<&Session>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(session) = session {
        insert(&mut headers, PROTOCOL_VERSION, session.version.as_str());
        if let Some(id) = &session.id {
            headers.insert(SESSION_ID, id.clone());
        }
    }
    headers
}

/// What boxes on the way may route by, without reading the body.
fn describe(headers: &mut HeaderMap, request: &ClientRequest, params: &Params) {
    insert(headers, METHOD, request.method());
    let name = match request {
        ClientRequest::CallToolRequest(call) => {
            params.insert_into(headers, &call.params);
            Some(&*call.params.name)
        }
        ClientRequest::GetPromptRequest(get) => Some(&*get.params.name),
        ClientRequest::ReadResourceRequest(read) => Some(&*read.params.uri),
        ClientRequest::GetTaskRequest(get) => Some(&*get.params.task_id),
        ClientRequest::UpdateTaskRequest(update) => Some(&*update.params.task_id),
        ClientRequest::CancelTaskRequest(cancel) => Some(&*cancel.params.task_id),
        _ => None,
    };
    if let Some(name) = name {
        insert(headers, NAME, &encode(name));
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// Text as a header's value: in Base64 where it would not survive as it is.
pub(super) fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let padded = text.starts_with(' ') || text.ends_with(' ');
    let encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !padded && !encoded {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_survive_in_a_header_is_encoded() {
        for (text, want) in [
            ("", ""),
            ("get_weather", "get_weather"),
            ("two words", "two words"),
            (" padded", "=?base64?IHBhZGRlZA==?="),
            ("padded ", "=?base64?cGFkZGVkIA==?="),
            ("wörld", "=?base64?d8O2cmxk?="),
            ("a\nb", "=?base64?YQpi?="),
            ("a\tb", "=?base64?YQli?="),
            ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ] {
            assert_eq!(encode(text), want, "{text:?}");
        }
    }
}
