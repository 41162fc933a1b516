//! `initialize` and `server/discover`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::knobs::StartKnobs;
use super::message::{
    self, INTERNAL_ERROR, METHOD_NOT_FOUND, Request, RpcError, STATELESS, UNSUPPORTED_VERSION,
};
use super::outbox::Outbox;
use super::pause::pause;
use super::server::Server;
use super::tasks;

/// Newest first.
pub(crate) const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(crate) async fn answer(server: Arc<Server>, request: Request, out: Outbox) {
    let start = &server.knobs.start;
    pause(start.delay_ms).await;
    let down = server.knobs.process.is_down().then_some(1);
    if let Some(code) = start.exit_on_initialize.or(down) {
        return server.exit(code);
    }
    if !start.never {
        out.answer(&message::reply(&request.id, outcome(start, &request)));
    }
}

fn outcome(start: &StartKnobs, request: &Request) -> Result<Value, RpcError> {
    if start.rpc_error.is_some() || start.rpc_message.is_some() {
        let code = start.rpc_error.unwrap_or(INTERNAL_ERROR);
        return Err(RpcError::asked(code, start.rpc_message.as_ref()));
    }
    match request.method.as_str() {
        "server/discover" if start.lifecycle.has_discover() => Ok(discovered(start)),
        "initialize" if start.lifecycle.has_initialize() => Ok(initialized(start, &request.params)),
        "initialize" => Err(RpcError {
            data: Some(json!({ "supported": [STATELESS] })),
            ..RpcError::new(UNSUPPORTED_VERSION, "no version with initialize")
        }),
        method => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!("no method {method}"),
        )),
    }
}

fn discovered(start: &StartKnobs) -> Value {
    let mut versions = vec![start.version.as_deref().unwrap_or(STATELESS)];
    if start.no_version {
        versions.clear();
    } else if start.lifecycle.has_initialize() {
        versions.extend(VERSIONS);
    }
    let mut result = described(start);
    result["supportedVersions"] = json!(versions);
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": server_info() });
    result
}

fn initialized(start: &StartKnobs, params: &Value) -> Value {
    let mut result = described(start);
    result["serverInfo"] = server_info();
    if !start.no_version {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        result["protocolVersion"] = json!(match &start.version {
            Some(version) => version,
            None => negotiate(asked),
        });
    }
    result
}

fn described(start: &StartKnobs) -> Value {
    let mut result = json!({
        "capabilities": {
            "tools": { "listChanged": true },
            "prompts": {},
            "resources": {},
        },
    });
    if !start.no_tasks {
        result["capabilities"]["extensions"] = json!({ tasks::EXTENSION: {} });
    }
    if let Some(instructions) = &start.instructions {
        result["instructions"] = json!(instructions);
    }
    result
}

fn server_info() -> Value {
    json!({ "name": "probe", "version": env!("CARGO_PKG_VERSION") })
}

/// The version that was asked for if it is known, else the newest one.
fn negotiate(asked: Option<&str>) -> &'static str {
    let known = VERSIONS.iter().find(|known| Some(**known) == asked);
    known.unwrap_or(&VERSIONS[0])
}
