//! Prompts and resources: small fixed sets without faults of their own.

use serde_json::{Value, json};

use super::message::{INVALID_PARAMS, METHOD_NOT_FOUND, Request, RpcError};

pub(crate) fn answer(request: &Request) -> Result<Value, RpcError> {
    let field = |name| request.params.get(name).and_then(Value::as_str);
    match request.method.as_str() {
        "prompts/list" => Ok(json!({ "prompts": [
            { "name": "greet", "description": "greets", "arguments": [{ "name": "whom" }] },
            { "name": "part", "description": "says goodbye" },
        ] })),
        "prompts/get" => prompt(field("name"), &request.params),
        "resources/list" => Ok(json!({ "resources": [
            { "uri": "probe://one", "name": "one", "mimeType": "text/plain" },
            { "uri": "probe://two", "name": "two", "mimeType": "text/plain" },
        ] })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
        "resources/read" => resource(field("uri")),
        method => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!("no method {method}"),
        )),
    }
}

fn prompt(name: Option<&str>, params: &Value) -> Result<Value, RpcError> {
    let whom = params.pointer("/arguments/whom").and_then(Value::as_str);
    let text = match name {
        Some("greet") => format!("Hello, {}!", whom.unwrap_or("world")),
        Some("part") => "Goodbye!".to_owned(),
        _ => return Err(RpcError::new(INVALID_PARAMS, "no such prompt")),
    };
    let content = json!({ "type": "text", "text": text });
    Ok(json!({ "messages": [{ "role": "user", "content": content }] }))
}

fn resource(uri: Option<&str>) -> Result<Value, RpcError> {
    let text = match uri {
        Some("probe://one") => "1",
        Some("probe://two") => "2",
        _ => return Err(RpcError::new(-32002, "no such resource")),
    };
    let content = json!({ "uri": uri, "mimeType": "text/plain", "text": text });
    Ok(json!({ "contents": [content] }))
}
