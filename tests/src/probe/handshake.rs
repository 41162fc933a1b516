//! `initialize`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::knobs::StartKnobs;
use super::message::{self, INTERNAL_ERROR, Request, RpcError};
use super::outbox::Outbox;
use super::pause::pause;
use super::server::Server;

/// Newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub(crate) async fn answer(server: Arc<Server>, request: Request, out: Outbox) {
    let start = &server.knobs.start;
    pause(start.delay_ms).await;
    let down = server.knobs.process.is_down().then_some(1);
    if let Some(code) = start.exit_on_initialize.or(down) {
        return server.exit(code);
    }
    if !start.never {
        out.answer(&message::reply(
            &request.id,
            outcome(start, &request.params),
        ));
    }
}

fn outcome(start: &StartKnobs, params: &Value) -> Result<Value, RpcError> {
    if start.rpc_error.is_some() || start.rpc_message.is_some() {
        let code = start.rpc_error.unwrap_or(INTERNAL_ERROR);
        return Err(RpcError::asked(code, start.rpc_message.as_ref()));
    }
    let mut result = json!({
        "capabilities": {
            "tools": { "listChanged": true },
            "prompts": {},
            "resources": {},
        },
        "serverInfo": { "name": "probe", "version": env!("CARGO_PKG_VERSION") },
    });
    if !start.no_version {
        let asked = params.get("protocolVersion").and_then(Value::as_str);
        result["protocolVersion"] = json!(match &start.version {
            Some(version) => version,
            None => negotiate(asked),
        });
    }
    if let Some(instructions) = &start.instructions {
        result["instructions"] = json!(instructions);
    }
    Ok(result)
}

/// The version that was asked for if it is known, else the newest one.
fn negotiate(asked: Option<&str>) -> &'static str {
    let known = VERSIONS.iter().find(|known| Some(**known) == asked);
    known.unwrap_or(&VERSIONS[0])
}
