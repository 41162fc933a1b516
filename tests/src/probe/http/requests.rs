//! The log of HTTP requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::log::{Appender, Log};
use super::super::server::lock;
use super::head::Head;

/// The HTTP requests that a probe, or several, wrote to one file.
pub type HttpRequests = Log<HttpRequest>;

/// How much of a body is kept.
const BODY: usize = 4096;

/// One HTTP request, as it came in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The how manieth connection it came on, from 1.
    pub connection: u64,
    /// `POST`, `GET`, `DELETE`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// All headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The beginning of the body.
    pub body: String,
    /// The JSON-RPC method of the body.
    pub rpc: Option<String>,
    /// The JSON-RPC id of the body.
    pub id: Option<Value>,
    /// The `tag` argument of a call.
    pub tag: Option<String>,
}

/// The writing side: into a file, into memory, or nowhere.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: Option<Appender>,
    memory: Option<Mutex<Vec<HttpRequest>>>,
}

// === impl HttpRequest ===

impl HttpRequest {
    pub(crate) fn new(connection: u64, head: &Head) -> Self {
        Self {
            connection,
            method: head.method.clone(),
            path: head.path.clone(),
            headers: head.headers.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn with_body(mut self, body: &[u8]) -> Self {
        self.body = String::from_utf8_lossy(&body[..body.len().min(BODY)]).into_owned();
        let Ok(message) = serde_json::from_slice::<Value>(body) else {
            return self;
        };
        let text = |pointer| {
            let found = message.pointer(pointer).and_then(Value::as_str);
            found.map(str::to_owned)
        };
        self.rpc = text("/method");
        self.tag = text("/params/arguments/tag");
        self.id = message.get("id").cloned();
        self
    }

    /// A header by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The `Mcp-Session-Id`.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.header("mcp-session-id")
    }

    /// Whether it carries this JSON-RPC method.
    #[must_use]
    pub fn is(&self, rpc: &str) -> bool {
        self.rpc.as_deref() == Some(rpc)
    }

    /// The names by which a fault can be about this request.
    pub(crate) fn names(&self) -> Vec<&str> {
        let resumes = self.method == "GET" && self.header("last-event-id").is_some();
        let method = if resumes { "resume" } else { &self.method };
        let rpc = self.rpc.as_deref();
        [Some(method), rpc].into_iter().flatten().collect()
    }
}

// === impl Recorder ===

impl Recorder {
    pub(crate) fn new(file: Option<&Path>, in_memory: bool) -> std::io::Result<Self> {
        Ok(Self {
            file: file.map(Appender::open).transpose()?,
            memory: in_memory.then(Mutex::default),
        })
    }

    pub(crate) fn note(&self, request: &HttpRequest) {
        if let Some(file) = &self.file
            && let Err(error) = file.append(request)
        {
            eprintln!("probe: cannot write the log of requests: {error}");
        }
        if let Some(memory) = &self.memory {
            lock(memory).push(request.clone());
        }
    }

    pub(crate) fn noted(&self) -> Vec<HttpRequest> {
        self.memory
            .as_ref()
            .map_or_else(Vec::new, |memory| lock(memory).clone())
    }
}
