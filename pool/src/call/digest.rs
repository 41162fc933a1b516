//! A digest of the arguments of a call.

use rmcp::model::JsonObject;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Equal for arguments that are equal as JSON.
pub(super) fn digest(object: &JsonObject) -> [u8; 32] {
    let mut sha = Sha256::new();
    feed_object(&mut sha, object);
    sha.finalize().into()
}

/// Feeds a value so that no two different ones give the same bytes: each begins with
/// its kind, and what has a length says it first.
fn feed(sha: &mut Sha256, value: &Value) {
    match value {
        Value::Null => sha.update(b"n"),
        Value::Bool(true) => sha.update(b"t"),
        Value::Bool(false) => sha.update(b"f"),
        Value::Number(number) => feed_text(sha, b'#', &number.to_string()),
        Value::String(text) => feed_text(sha, b'"', text),
        Value::Array(items) => {
            feed_length(sha, b'[', items.len());
            items.iter().for_each(|item| feed(sha, item));
        }
        Value::Object(object) => feed_object(sha, object),
    }
}

fn feed_object(sha: &mut Sha256, object: &JsonObject) {
    feed_length(sha, b'{', object.len());
    let mut members: Vec<_> = object.iter().collect();
    // Sorted here: a feature of serde_json keeps members in the order of the text.
    members.sort_unstable_by_key(|(name, _)| *name);
    for (name, value) in members {
        feed_text(sha, b'"', name);
        feed(sha, value);
    }
}

fn feed_text(sha: &mut Sha256, kind: u8, text: &str) {
    feed_length(sha, kind, text.len());
    sha.update(text.as_bytes());
}

fn feed_length(sha: &mut Sha256, kind: u8, length: usize) {
    sha.update([kind]);
    sha.update((length as u64).to_le_bytes());
}
