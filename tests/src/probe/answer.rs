//! The answer to a tool call, as bytes.

use serde_json::{Value, json};

use super::knobs::CallKnobs;
use super::message::{self, RpcError};
use super::outbox::{Out, Outbox};

/// Stands in the text of a `bad_utf8` answer for two bytes that no text may hold.
const BAD: &str = "\u{fffd}";

#[derive(Debug)]
pub(crate) struct Answer<'a> {
    text: Vec<u8>,
    knobs: &'a CallKnobs,
}

/// A result with text and structured content.
pub(crate) fn text(knobs: &CallKnobs, structured: &Value) -> Value {
    let mut text = match (&knobs.is_error, knobs.bytes, &knobs.echo) {
        (Some(error), _, _) => error.clone(),
        (None, Some(bytes), _) => "x".repeat(bytes),
        (None, None, Some(Value::String(echo))) => echo.clone(),
        (None, None, Some(echo)) => echo.to_string(),
        (None, None, None) => "ok".to_owned(),
    };
    if knobs.bad_utf8 {
        text.push_str(BAD);
    }
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": structured,
        "isError": knobs.is_error.is_some(),
    })
}

/// A result that is all structure.
pub(crate) fn structured(structured: &Value) -> Value {
    json!({
        "content": [{ "type": "text", "text": structured.to_string() }],
        "structuredContent": structured,
        "isError": false,
    })
}

// === impl Answer ===

impl<'a> Answer<'a> {
    pub(crate) fn new(id: &Value, knobs: &'a CallKnobs, outcome: Result<Value, RpcError>) -> Self {
        if let Some(raw) = &knobs.raw {
            let text = raw.replace("{id}", &id.to_string()).into_bytes();
            return Self { text, knobs };
        }
        let id = knobs.answer_id.as_ref().unwrap_or(id);
        let mut message = message::reply(id, outcome);
        if let Some(bytes) = knobs.line_bytes {
            pad(&mut message, bytes);
        }
        let mut text = message.to_string().into_bytes();
        if knobs.bad_utf8 {
            text = spoil(&text);
        }
        Self { text, knobs }
    }

    pub(crate) fn send(self, out: &Outbox) {
        for _ in 0..self.knobs.answer_again {
            out.push(Out::Answer(self.text.clone()));
        }
        out.push(if self.knobs.no_newline {
            Out::Torn(self.text)
        } else {
            Out::Answer(self.text)
        });
    }
}

/// Makes the message's line, with its line feed, `bytes` long if it is not longer already.
fn pad(message: &mut Value, bytes: usize) {
    let length = message.to_string().len() + 1;
    if let Some(Value::String(text)) = message.pointer_mut("/result/content/0/text") {
        text.push_str(&"x".repeat(bytes.saturating_sub(length)));
    }
}

/// Puts the bytes `ff fe` where the mark stands.
fn spoil(text: &[u8]) -> Vec<u8> {
    let mut spoilt = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(BAD.as_bytes()) {
            spoilt.extend([0xff, 0xfe]);
            rest = after;
        } else {
            spoilt.push(first);
            rest = after;
        }
    }
    spoilt
}
