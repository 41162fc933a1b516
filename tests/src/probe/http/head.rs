//! The head of a request.

use std::collections::BTreeMap;
use std::io;

/// The longest head that is read.
pub(crate) const MAX_HEAD: usize = 64 * 1024;

const MAX_HEADERS: usize = 100;

/// Method, path and headers, their names in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
}

// === impl Head ===

impl Head {
    /// Reads a head if `bytes` hold all of it, and says how long it is.
    pub(crate) fn parse(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(bytes).map_err(invalid)?;
        let httparse::Status::Complete(length) = parsed else {
            return Ok(None);
        };
        let named = request.headers.iter().map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_ascii_lowercase(), value)
        });
        let head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            headers: named.collect(),
        };
        Ok(Some((head, length)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether a header's value holds this word, in any case.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        let value = self.header(name).unwrap_or_default();
        value.to_ascii_lowercase().contains(word)
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.header("mcp-session-id")
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.header("mcp-protocol-version")
    }
}

pub(crate) fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
