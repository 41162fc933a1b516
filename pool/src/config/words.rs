//! The words that settings may hold, compared without regard to case, `-` and `_`,
//! since clients write `streamable-http`, `streamableHttp` and `streamable_http`.

use steadfast_classify::Effect;

use super::{family::Family, settings::IdempotencyPolicy};

pub(crate) type Words<T> = &'static [(&'static str, T)];

/// What `type` means; `None` is a transport that is refused.
pub(crate) const TYPES: Words<Option<Family>> = &[
    ("stdio", Some(Family::Stdio)),
    ("http", Some(Family::Http)),
    ("streamable-http", Some(Family::Http)),
    ("ws", Some(Family::WebSocket)),
    ("websocket", Some(Family::WebSocket)),
    ("sse", None),
];

/// The versions of the protocol that can be asked for.
pub(crate) const PROTOCOLS: Words<&str> = &[
    ("2024-11-05", "2024-11-05"),
    ("2025-03-26", "2025-03-26"),
    ("2025-06-18", "2025-06-18"),
    ("2025-11-25", "2025-11-25"),
    ("2026-07-28", "2026-07-28"),
];

pub(crate) const SHARED: Words<Family> = &[
    ("stdio", Family::Stdio),
    ("websocket", Family::WebSocket),
    ("ws", Family::WebSocket),
    ("http", Family::Http),
];

pub(crate) const EFFECTS: Words<Effect> = &[
    ("read_only", Effect::ReadOnly),
    ("idempotent", Effect::Idempotent),
    ("non_idempotent", Effect::NonIdempotent),
];

pub(crate) const IDEMPOTENCY: Words<IdempotencyPolicy> = &[
    ("off", IdempotencyPolicy::Off),
    ("send", IdempotencyPolicy::Send),
    ("deduplicated", IdempotencyPolicy::Deduplicated),
];

pub(crate) fn find<T: Copy>(word: &str, words: Words<T>) -> Option<T> {
    let (_, meaning) = words.iter().find(|(known, _)| same(word, known))?;
    Some(*meaning)
}

/// The words as a list for an error, without those that are refused anyway.
pub(crate) fn list<T>(words: Words<T>, refused: &str) -> String {
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    let allowed: Vec<_> = words.into_iter().filter(|word| *word != refused).collect();
    allowed.join(", ")
}

pub(crate) fn same(left: &str, right: &str) -> bool {
    letters(left).eq(letters(right))
}

fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars()
        .filter(|char| !matches!(char, '-' | '_'))
        .map(|char| char.to_ascii_lowercase())
}
