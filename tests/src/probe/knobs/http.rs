//! Streamable HTTP and its faults.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the probe serves over HTTP.
///
/// Every path is the endpoint. Which lifecycle it speaks says `start.lifecycle`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpKnobs {
    /// The port on 127.0.0.1; 0: one that is free.
    pub port: u16,
    /// File to which the port is written once it is listened on.
    pub port_file: Option<PathBuf>,
    /// File to which each HTTP request appends one line; see
    /// [`HttpRequests`](crate::probe::HttpRequests).
    pub requests: Option<PathBuf>,
    /// Whether answers come as JSON or as events.
    pub answers: Format,
    /// How events look.
    pub events: SseKnobs,
    /// Hand out no session.
    pub no_session: bool,
    /// Repeat the session of a request in the answer's header, as some servers do.
    pub echo_session: bool,
    /// Answer 401 to whatever does not carry this bearer token.
    pub token: Option<String>,
    /// The `WWW-Authenticate` of that answer; absent: `Bearer`, empty: none.
    pub challenge: Option<String>,
    /// Close each connection after one answer.
    pub no_keep_alive: bool,
    /// Close a connection on which nothing moved for so long, as a proxy does.
    pub idle_ms: Option<u64>,
    /// Speak TLS.
    pub tls: Option<Tls>,
    /// File to which the certificate is written, as PEM.
    pub cert_file: Option<PathBuf>,
    /// Faults of single requests; the first that fits is had.
    pub faults: Vec<HttpFault>,
}

/// What TLS does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tls {
    /// A certificate for `localhost` and 127.0.0.1, made at the start and signed by itself.
    SelfSigned,
    /// Connections are taken, and the handshake is never answered.
    Stall,
}

/// What an answer looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One JSON body.
    #[default]
    Json,
    /// A stream of events, with the notices that precede the answer.
    Sse,
}

/// How a stream of events looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SseKnobs {
    /// Give each event an id, with which its stream can be resumed.
    pub ids: bool,
    /// Begin with an event that has an id and no data.
    pub priming: bool,
    /// Begin with this `retry`.
    pub retry_ms: Option<u64>,
}

/// A fault of a request: which ones, and what becomes of them.
///
/// In this order: `delay_ms`, the cut at `unread` or `received`, the execution, the cut at
/// `executed`, the answer with the other cuts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpFault {
    /// Only these: JSON-RPC methods, `POST`, `GET` (the stream for what belongs to no request),
    /// `resume` (a GET with `Last-Event-ID`), `DELETE`; none: all.
    pub on: Vec<String>,
    /// But not these.
    pub except: Vec<String>,
    /// Spare the first so many.
    pub skip: u64,
    /// Only so many.
    pub times: Option<u64>,

    /// Wait so long before anything else.
    pub delay_ms: u64,
    /// How the exchange ends before its end.
    pub cut: Option<Cut>,
    /// Where.
    pub at: At,
    /// After the cut the server is down for so long: connections are reset and none is taken.
    pub outage_ms: Option<u64>,

    /// Answer with this status, without executing anything.
    pub status: Option<u16>,
    /// More headers of the answer.
    pub headers: BTreeMap<String, String>,
    /// The answer's `Content-Type`; empty: none.
    pub content_type: Option<String>,
    /// Answer with this body, without executing anything; `{id}` becomes the request's id.
    pub body: Option<String>,
    /// Answer with a body of so many bytes.
    pub body_bytes: Option<u64>,
    /// Execute all the same, and throw the right answer away.
    pub execute: bool,

    /// Answer in this format.
    pub format: Option<Format>,
    /// The answer's events look like this.
    pub events: Option<SseKnobs>,
    /// Send a body in chunks, without its length.
    pub chunked: bool,
    /// Write a body so many bytes at a time.
    pub piece: Option<NonZeroUsize>,
    /// Wait so long after each piece.
    pub piece_gap_ms: u64,
}

/// How an exchange ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The connection is reset.
    Reset,
    /// The connection is closed.
    Close,
    /// Nothing more comes, and the connection stays.
    Stall,
    /// The body ends as if this were all of it, and the connection stays.
    End,
}

/// Where an exchange is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// When the request's head has been read, and none of its body.
    Unread,
    /// When it has been read: nothing is executed.
    #[default]
    Received,
    /// When it has been executed, before any byte of the answer.
    Executed,
    /// In the middle of the answer's head.
    Head,
    /// After the head, and after the event that primes a stream.
    Begun,
    /// In the middle of the body or of the event that is the answer.
    Half,
}

// === impl HttpFault ===

impl HttpFault {
    /// Whether it is about a request that goes by one of these names.
    pub(crate) fn fits(&self, names: &[&str]) -> bool {
        let named = |list: &[String]| list.iter().any(|name| names.contains(&name.as_str()));
        (self.on.is_empty() || named(&self.on)) && !named(&self.except)
    }

    /// Whether the right answer is not given.
    pub(crate) fn replaces(&self) -> bool {
        self.status.is_some() || self.body.is_some() || self.body_bytes.is_some()
    }

    /// Where a cut comes that leaves the head whole.
    pub(crate) const fn at_in_body(&self) -> At {
        match self.at {
            At::Begun => At::Begun,
            _ => At::Half,
        }
    }

    pub(crate) fn cut_at(&self, at: At) -> Option<Cut> {
        self.cut.filter(|_| self.at == at)
    }
}
