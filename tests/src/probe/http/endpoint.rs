//! What a request is answered, as the specification has it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::super::handshake::VERSIONS;
use super::super::knobs::{Format, HttpFault};
use super::super::message::{HEADER_MISMATCH, Incoming, Request, RpcError, STATELESS};
use super::super::outbox::Outbox;
use super::head::Head;
use super::reply::{Body, Events, JSON, Reply, SSE};
use super::sessions::{ASIDE, Visit};
use super::site::Site;

// === impl Site ===

impl Site {
    pub(crate) async fn reply(
        self: &Arc<Self>,
        head: &Head,
        body: &[u8],
        fault: &HttpFault,
    ) -> Reply {
        let message = Incoming::parse(body);
        let id = match &message {
            Incoming::Request(request) => request.id.clone(),
            _ => Value::Null,
        };
        let right = if !fault.replaces() || fault.execute {
            Some(self.right(head, body, message, fault).await)
        } else {
            None
        };
        let reply = match right {
            Some(right) if !fault.replaces() => right,
            right => {
                if let Some(right) = right {
                    right.executed().await;
                }
                Reply::instead(fault, &id)
            }
        };
        let echoed = head
            .session()
            .filter(|_| self.rules.read(|knobs| knobs.echo_session));
        match echoed {
            Some(session) => reply.with("Mcp-Session-Id", session).touched(fault),
            None => reply.touched(fault),
        }
    }

    /// The answer of a server without faults.
    async fn right(
        self: &Arc<Self>,
        head: &Head,
        body: &[u8],
        message: Incoming,
        fault: &HttpFault,
    ) -> Reply {
        if let Some(refusal) = self.unauthorized(head) {
            return refusal;
        }
        match head.method.as_str() {
            "POST" => match self.visit(head, &message) {
                Ok(visit) => self.post(visit, body, message, fault).await,
                Err(refusal) => refusal,
            },
            "GET" => self.get(head, fault).unwrap_or_else(|refusal| refusal),
            "DELETE" if head.session().is_some_and(|id| self.sessions.end(id)) => Reply::empty(204),
            "DELETE" => Reply::text(404, "no such session"),
            _ => Reply::text(405, "no such method").with("Allow", "POST, GET, DELETE"),
        }
    }

    fn unauthorized(&self, head: &Head) -> Option<Reply> {
        let (token, challenge) = self
            .rules
            .read(|knobs| (knobs.token.clone(), knobs.challenge.clone()));
        let wanted = format!("Bearer {}", token?);
        if head.header("authorization") == Some(&wanted) {
            return None;
        }
        let challenge = challenge.unwrap_or_else(|| "Bearer".to_owned());
        let refusal = Reply::text(401, "who are you?");
        Some(refusal.with("WWW-Authenticate", &challenge))
    }

    /// Whose message it is.
    fn visit(&self, head: &Head, message: &Incoming) -> Result<Arc<Visit>, Reply> {
        if !head.says("content-type", JSON) {
            return Err(Reply::text(415, "only JSON is taken"));
        }
        if !head.says("accept", JSON) || !head.says("accept", SSE) {
            return Err(Reply::text(406, "both JSON and events must be accepted"));
        }
        let start = &self.server.knobs.start;
        if let Incoming::Request(request) = message {
            let is_stateless = request.is_stateless() || request.method == "server/discover";
            if is_stateless && start.lifecycle.has_discover() {
                mismatch(head, request).map_or(Ok(()), Err)?;
                return Ok(self.sessions.single(&self.server));
            }
            if request.method == "initialize" {
                let hands_out = start.lifecycle.has_initialize()
                    && start.rpc_error.is_none()
                    && !self.rules.read(|knobs| knobs.no_session);
                return Ok(match hands_out {
                    true => self.sessions.begin(&self.server),
                    false => self.sessions.common(&self.server),
                });
            }
        } else if head.version() == Some(STATELESS) {
            return Ok(self.sessions.single(&self.server));
        }
        self.known(head)
    }

    /// The session that the request names.
    fn known(&self, head: &Head) -> Result<Arc<Visit>, Reply> {
        if head
            .version()
            .is_some_and(|version| !VERSIONS.contains(&version))
        {
            return Err(Reply::text(400, "an unknown MCP-Protocol-Version"));
        }
        if self.rules.read(|knobs| knobs.no_session) {
            return Ok(self.sessions.common(&self.server));
        }
        match head.session() {
            None => Err(Reply::text(400, "no Mcp-Session-Id")),
            Some(id) => {
                let found = self.sessions.find(id);
                found.ok_or_else(|| Reply::text(404, "no such session"))
            }
        }
    }

    async fn post(
        self: &Arc<Self>,
        visit: Arc<Visit>,
        body: &[u8],
        message: Incoming,
        fault: &HttpFault,
    ) -> Reply {
        let Incoming::Request(request) = message else {
            let _turn = self.turn.lock().await;
            visit.session.receive(body, &visit.aside).await;
            return Reply::empty(202);
        };
        let (format, look) = self
            .rules
            .read(|knobs| (knobs.answers, knobs.events.clone()));
        let look = fault.events.clone().unwrap_or(look);
        let format = fault.format.unwrap_or(format);
        let is_kept = format == Format::Sse && (look.ids || look.priming);
        let (number, stream) = visit.open(is_kept);
        let (out, queue) = Outbox::new();
        tokio::spawn(Arc::clone(&stream).fill(queue));
        self.receive(&visit, body.to_vec(), out);
        let mut reply = match format {
            Format::Json => Reply::new(200, Body::Answer(stream)).with("Content-Type", JSON),
            Format::Sse => events(Events {
                visit: Arc::clone(&visit),
                stream,
                number,
                place: 0,
                look,
            }),
        };
        if request.method == "initialize" {
            reply = reply.with("Mcp-Session-Id", visit.id.as_deref().unwrap_or_default());
        }
        reply.request = Some((visit, request.id));
        reply
    }

    /// Lets the session have a request, in its turn. Whatever becomes of the connection, the
    /// request runs.
    fn receive(self: &Arc<Self>, visit: &Arc<Visit>, body: Vec<u8>, out: Outbox) {
        let (site, visit) = (Arc::clone(self), Arc::clone(visit));
        tokio::spawn(async move {
            let _turn = site.turn.lock().await;
            visit.session.receive(&body, &out).await;
        });
    }

    fn get(&self, head: &Head, fault: &HttpFault) -> Result<Reply, Reply> {
        let visit = self.known(head)?;
        let look = self.rules.read(|knobs| knobs.events.clone());
        let look = fault.events.clone().unwrap_or(look);
        let (number, place) = match head.header("last-event-id") {
            None => (ASIDE, visit.aside_place.load(Ordering::Relaxed)),
            Some(id) => parse(id).ok_or_else(|| Reply::text(400, "no such event"))?,
        };
        let stream = visit.stream(number);
        Ok(events(Events {
            stream: stream.ok_or_else(|| Reply::text(404, "no such stream"))?,
            visit,
            number,
            place,
            look,
        }))
    }
}

fn events(events: Events) -> Reply {
    Reply::new(200, Body::Events(Box::new(events)))
        .with("Content-Type", SSE)
        .with("Cache-Control", "no-cache")
}

/// An event's id: its stream, and the place after it.
fn parse(id: &str) -> Option<(u64, usize)> {
    let (number, place) = id.split_once('-')?;
    Some((number.parse().ok()?, place.parse().ok()?))
}

/// What is wrong with the headers that repeat what the body says.
fn mismatch(head: &Head, request: &Request) -> Option<Reply> {
    let field = |name| request.params.get(name).and_then(Value::as_str);
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => field("name"),
        "resources/read" => field("uri"),
        _ => None,
    };
    let wrong = [
        ("mcp-protocol-version", request.version()),
        ("mcp-method", Some(request.method.as_str())),
        ("mcp-name", name),
    ]
    .into_iter()
    .find(|(header, said)| said.is_some() && head.header(header) != *said);
    let (header, said) = wrong?;
    let error = RpcError {
        data: Some(json!({ "header": header, "body": said })),
        ..RpcError::new(
            HEADER_MISMATCH,
            format!("{header} is not what the body says"),
        )
    };
    Some(Reply::error(400, &request.id, error))
}
