//! What a server repeats of what it was sent.
//!
//! The words of a refusal go into errors, and from there into logs. Many servers quote the
//! address that was asked for, or the token that was no good.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use url::Url;

/// Shorter than any secret worth the name, and than most words.
const MIN: usize = 8;

const HUSHED: &str = "[hidden]";

/// What went out with a request and is not to be quoted.
#[derive(Clone, Default)]
pub(crate) struct Hush(Vec<String>);

// === impl Hush ===

impl Hush {
    /// The parts of an address and of headers that may be secret.
    pub(crate) fn of(url: &Url, headers: &HeaderMap) -> Self {
        let mut hush = Self::default();
        url.path().split('/').for_each(|part| hush.add(part));
        hush.add(url.query().unwrap_or_default());
        for (_, value) in url.query_pairs() {
            hush.add(&value);
        }
        // As it is written there, too.
        let raw = url.query().unwrap_or_default().split(['&', '=']);
        raw.for_each(|part| hush.add(part));
        for value in headers.values() {
            hush.add_header(value);
        }
        hush
    }

    /// One more: the scheme before a token is none.
    pub(crate) fn add_header(&mut self, value: &HeaderValue) {
        let value = String::from_utf8_lossy(value.as_bytes());
        value.split_whitespace().for_each(|word| self.add(word));
    }

    pub(crate) fn add(&mut self, secret: &str) {
        if secret.len() >= MIN {
            self.0.push(secret.to_owned());
        }
    }

    /// The same text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut secrets: Vec<_> = self.0.iter().collect();
        // The longest first: another may be a part of it.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
            .into_iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, HUSHED))
    }
}

impl fmt::Debug for Hush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hush")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_were_sent_are_hidden_wherever_they_are_quoted() {
        let url = Url::parse("http://h/mcp/path-token?key=query%2Btoken&env=prod").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(
            "authorization",
            HeaderValue::from_static("Bearer header-token"),
        );
        let mut hush = Hush::of(&url, &headers);
        hush.add("session-token");

        for (text, want) in [
            ("Cannot POST /mcp/path-token", "Cannot POST /mcp/[hidden]"),
            ("?key=query%2Btoken&env=prod", "?[hidden]"),
            ("'query+token'", "'[hidden]'"),
            ("bad token header-token", "bad token [hidden]"),
            ("no session-token here", "no [hidden] here"),
            ("Bearer of prod news to mcp", "Bearer of prod news to mcp"),
        ] {
            assert_eq!(hush.hide(text), want);
        }
    }
}
