//! An answer to a request, before it is bytes.

use std::sync::Arc;

use serde_json::Value;

use super::super::knobs::{HttpFault, SseKnobs};
use super::super::message::{self, RpcError};
use super::sessions::Visit;
use super::stream::Stream;

pub(crate) const JSON: &str = "application/json";
pub(crate) const SSE: &str = "text/event-stream";

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
    /// Whose request this answers, and its id.
    pub(crate) request: Option<(Arc<Visit>, Value)>,
}

#[derive(Debug)]
pub(crate) enum Body {
    Bytes(Vec<u8>),
    /// So many bytes.
    Fill(u64),
    /// The answer of this stream, once it is there.
    Answer(Arc<Stream>),
    Events(Box<Events>),
}

/// A stream, as events from a place on.
#[derive(Debug)]
pub(crate) struct Events {
    pub(crate) visit: Arc<Visit>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) number: u64,
    pub(crate) place: usize,
    pub(crate) look: SseKnobs,
}

// === impl Reply ===

impl Reply {
    pub(crate) fn new(status: u16, body: Body) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            request: None,
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::new(status, Body::Bytes(Vec::new()))
    }

    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::new(status, Body::Bytes(text.as_bytes().to_vec()))
            .with("Content-Type", "text/plain; charset=utf-8")
    }

    pub(crate) fn error(status: u16, id: &Value, error: RpcError) -> Self {
        let body = message::reply(id, Err(error)).to_string();
        Self::new(status, Body::Bytes(body.into_bytes())).with("Content-Type", JSON)
    }

    /// What a fault puts in the answer's place.
    pub(crate) fn instead(fault: &HttpFault, id: &Value) -> Self {
        let body = match (&fault.body, fault.body_bytes) {
            (Some(text), _) => Body::Bytes(text.replace("{id}", &id.to_string()).into_bytes()),
            (None, Some(bytes)) => Body::Fill(bytes),
            (None, None) => Body::Bytes(Vec::new()),
        };
        let reply = Self::new(fault.status.unwrap_or(200), body);
        let has_body = fault.body.is_some() || fault.body_bytes.is_some();
        if has_body {
            reply.with("Content-Type", JSON)
        } else {
            reply
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// With the headers that a fault asks for.
    pub(crate) fn touched(mut self, fault: &HttpFault) -> Self {
        for (name, value) in &fault.headers {
            self = self.with(name, value);
        }
        match &fault.content_type {
            Some(content_type) => self.with("Content-Type", content_type),
            None => self,
        }
    }

    /// Returns once what it answers has been executed.
    pub(crate) async fn executed(&self) {
        match &self.body {
            Body::Bytes(_) | Body::Fill(_) => {}
            Body::Answer(stream) => drop(stream.answer().await),
            Body::Events(events) => drop(events.stream.answer().await),
        }
    }

    pub(crate) fn head(&self, length: Option<u64>, is_last: bool) -> Vec<u8> {
        let reason = reason(self.status);
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        let mut line = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        for (name, value) in &self.headers {
            line(name, value);
        }
        match length {
            Some(_) if self.status == 204 => {}
            Some(length) => line("Content-Length", &length.to_string()),
            None => line("Transfer-Encoding", "chunked"),
        }
        if is_last {
            line("Connection", "close");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}
