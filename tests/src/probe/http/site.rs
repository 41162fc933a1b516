//! What all connections of one HTTP server share.

use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::super::events::EventKind;
use super::super::knobs::{HttpFault, HttpKnobs};
use super::super::message::{Incoming, Request};
use super::super::server::Server;
use super::gate::Gate;
use super::requests::{HttpRequest, Recorder};
use super::rules::Rules;
use super::sessions::{Sessions, Visit};

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) server: Arc<Server>,
    pub(crate) rules: Rules,
    pub(crate) recorder: Recorder,
    pub(crate) sessions: Sessions,
    pub(crate) gate: Gate,
    /// Held by a call that keeps the server from everything else.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

// === impl Site ===

impl Site {
    pub(crate) fn new(
        server: Arc<Server>,
        knobs: HttpKnobs,
        remembers: bool,
    ) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            recorder: Recorder::new(knobs.requests.as_deref(), remembers)?,
            gate: Gate::new(),
            rules: Rules::new(knobs),
            sessions: Sessions::default(),
            turn: tokio::sync::Mutex::default(),
            server,
        }))
    }

    /// The fault that a request has: the call's own one, or one of the server's.
    pub(crate) fn fault(&self, seen: &HttpRequest, body: &[u8]) -> HttpFault {
        let own = match Incoming::parse(body) {
            Incoming::Request(request) if request.method == "tools/call" => self.own(&request),
            _ => None,
        };
        let fault = own.or_else(|| self.rules.fault(&seen.names()));
        fault.unwrap_or_default()
    }

    fn own(&self, request: &Request) -> Option<HttpFault> {
        let tool = request.params.get("name")?.as_str()?;
        let none = serde_json::Map::new();
        let arguments = request.params.get("arguments").and_then(Value::as_object);
        let knobs = &self.server.knobs;
        // What cannot be read is told in the call's answer.
        let call = knobs.for_call(tool, arguments.unwrap_or(&none)).ok()?;
        let fault = *call.http?;
        if let Some(times) = fault.times {
            let key = format!("http:{}", call.tag.as_deref().unwrap_or(tool));
            let earlier = self.server.count_call(&key).unwrap_or(u64::MAX);
            if earlier < fault.skip || earlier - fault.skip >= times {
                return None;
            }
        }
        Some(fault)
    }

    /// The client has closed the connection on which it waited for an answer.
    pub(crate) fn client_gone(&self, visit: &Visit, id: &Value) {
        // Before 2026-07-28 it may come back and resume.
        if visit.is_stateless {
            visit.session.cancel_all();
        }
        self.server.tell_of(EventKind::Gone, id);
    }
}
