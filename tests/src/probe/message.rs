//! JSON-RPC messages.

use serde_json::{Value, json};

pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const HEADER_MISMATCH: i64 = -32020;
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// The first version without `initialize`.
pub(crate) const STATELESS: &str = "2026-07-28";

/// A message from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Request),
    Notice { method: String, params: Value },
    Reply { id: Value, body: Value },
    Unreadable,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A JSON-RPC error, without the id it answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

// === impl Incoming ===

impl Incoming {
    pub(crate) fn parse(text: &[u8]) -> Self {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(text) else {
            return Self::Unreadable;
        };
        let params = fields.remove("params").unwrap_or(Value::Null);
        match (fields.remove("method"), fields.remove("id")) {
            (Some(Value::String(method)), Some(id)) => {
                Self::Request(Request { id, method, params })
            }
            (Some(Value::String(method)), None) => Self::Notice { method, params },
            (None, Some(id)) => Self::Reply {
                id,
                body: Value::Object(fields),
            },
            _ => Self::Unreadable,
        }
    }
}

// === impl Request ===

impl Request {
    /// The version that the request itself names, as each does from 2026-07-28 on.
    pub(crate) fn version(&self) -> Option<&str> {
        let meta = self.params.get("_meta")?;
        meta.get("io.modelcontextprotocol/protocolVersion")?
            .as_str()
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.version() == Some(STATELESS)
    }
}

// === impl RpcError ===

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The error that a knob asks for.
    pub(crate) fn asked(code: i64, message: Option<&String>) -> Self {
        Self::new(code, message.map_or("the probe was told to fail", |m| m))
    }
}

/// The answer to request `id`.
pub(crate) fn reply(id: &Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => {
            let mut body = json!({ "code": error.code, "message": error.message });
            if let Some(data) = error.data {
                body["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": body })
        }
    }
}

pub(crate) fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(crate) fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
