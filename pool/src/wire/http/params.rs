//! Arguments of tools that go into headers too (`x-mcp-header`, from 2026-07-28 on).

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{CallToolRequestParams, JsonObject, Tool};
use serde_json::Value;

use super::headers::encode;

/// How many tools are remembered: a server may give them new names with each list.
const MOST: usize = 10_000;

/// What the tools of one server want in headers, as their schemas said when they were
/// last listed.
#[derive(Debug, Default)]
pub(super) struct Params(Mutex<HashMap<String, Vec<Promoted>>>);

/// An argument that is sent as a header too.
#[derive(Debug)]
struct Promoted {
    /// The names that lead to it, from the outside in.
    path: Vec<String>,
    header: HeaderName,
}

// === impl Params ===

impl Params {
    pub(super) fn learn(&self, tools: &[Tool]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let mut promoted = Vec::new();
            collect(&tool.input_schema, &mut Vec::new(), &mut promoted);
            if promoted.is_empty() {
                known.remove(&*tool.name);
            } else {
                if known.len() >= MOST {
                    known.clear();
                }
                known.insert(tool.name.to_string(), promoted);
            }
        }
    }

    pub(super) fn insert_into(&self, headers: &mut HeaderMap, call: &CallToolRequestParams) {
        let Some(arguments) = &call.arguments else {
            return;
        };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Promoted { path, header } in known.get(&*call.name).into_iter().flatten() {
            let text = value_at(arguments, path).and_then(text);
            let value = text.and_then(|text| HeaderValue::try_from(encode(&text)).ok());
            if let Some(mut value) = value {
                // An argument, and those are not for logs.
                value.set_sensitive(true);
                headers.insert(header.clone(), value);
            }
        }
    }
}

/// Finds the marked properties, at any depth below `properties`.
fn collect(schema: &JsonObject, path: &mut Vec<String>, found: &mut Vec<Promoted>) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties {
        let Value::Object(property) = property else {
            continue;
        };
        path.push(name.clone());
        if let Some(Value::String(header)) = property.get("x-mcp-header")
            && let Ok(header) = HeaderName::try_from(format!("mcp-param-{header}"))
        {
            found.push(Promoted {
                path: path.clone(),
                header,
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

fn value_at<'a>(arguments: &'a JsonObject, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(arguments.get(first)?, |value, name| value.get(name))
}

/// Only what is one plain value can be a header.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_of_any_depth_become_headers() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "list": { "type": "array", "x-mcp-header": "List" },
            "bad": { "type": "string", "x-mcp-header": "not a name" },
            "inner": { "properties": { "id": { "x-mcp-header": "Id" } } },
            "plain": { "type": "string" },
        } });
        let Value::Object(schema) = schema else {
            unreachable!("it is one")
        };
        let params = Params::default();
        params.learn(&[Tool::new("t", "", schema)]);
        let arguments = json!({
            "region": "zürich", "count": 3, "list": [1], "bad": "x", "inner": { "id": "7" },
            "plain": "y",
        });
        let Value::Object(arguments) = arguments else {
            unreachable!("it is one")
        };
        let mut headers = HeaderMap::new();

        let call = CallToolRequestParams::new("t").with_arguments(arguments);
        params.insert_into(&mut headers, &call);

        let mut seen: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                ("mcp-param-count", "3"),
                ("mcp-param-id", "7"),
                ("mcp-param-region", "=?base64?esO8cmljaA==?="),
            ]
        );
    }

    #[test]
    fn tools_with_ever_new_names_are_not_all_remembered() {
        let schema = json!({ "properties": { "a": { "x-mcp-header": "A" } } });
        let Value::Object(schema) = schema else {
            unreachable!("it is one")
        };
        let schema = std::sync::Arc::new(schema);
        let params = Params::default();
        for nth in 0..=MOST {
            params.learn(&[Tool::new(
                nth.to_string(),
                "",
                std::sync::Arc::clone(&schema),
            )]);
        }

        let known = params.0.lock().unwrap();
        assert!(known.len() <= MOST);
        assert!(known.contains_key(&MOST.to_string()), "the last is");
    }
}
