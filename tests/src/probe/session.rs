//! One client's connection: which request goes where.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::call::Call;
use super::message::{self, INVALID_REQUEST, Incoming, PARSE_ERROR, Request, RpcError};
use super::outbox::Outbox;
use super::server::{Server, lock};
use super::{fixed, handshake, tasks, tools};

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) server: Arc<Server>,
    initialized: AtomicBool,
    /// Whether the client said in its handshake that it follows tasks.
    follows_tasks: AtomicBool,
    /// Running calls by the JSON text of their id; sending cancels them.
    live: Mutex<HashMap<String, oneshot::Sender<()>>>,
    /// Requests of the server that wait for the client's reply.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    next_ask: AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(server: Arc<Server>) -> Arc<Self> {
        Arc::new(Self {
            server,
            initialized: AtomicBool::new(false),
            follows_tasks: AtomicBool::new(false),
            live: Mutex::default(),
            asked: Mutex::default(),
            next_ask: AtomicU64::new(1),
            tasks: Mutex::default(),
        })
    }

    /// Takes one message; answers go to `out`.
    ///
    /// Returns at once, except for a `blocking` call: then when that has ended.
    pub(crate) async fn receive(self: &Arc<Self>, text: &[u8], out: &Outbox) {
        let message = Incoming::parse(text);
        self.server.tell_received(&message);
        match message {
            Incoming::Request(request) => self.request(request, out).await,
            Incoming::Notice { method, params } => self.notice(&method, &params),
            Incoming::Reply { id, body } => self.replied(&id, body),
            Incoming::Unreadable => {
                let error = RpcError::new(PARSE_ERROR, "not a JSON-RPC message");
                out.answer(&message::reply(&Value::Null, Err(error)));
            }
        }
    }

    async fn request(self: &Arc<Self>, request: Request, out: &Outbox) {
        let start = &self.server.knobs.start;
        let method = request.method.as_str();
        let stateless = request.is_stateless().then(|| out.stateless());
        let out = stateless.as_ref().unwrap_or(out);
        let begins = matches!(method, "initialize" | "server/discover");
        if !begins && (start.mute || (method == "ping" && start.ignore_ping)) {
            return;
        }
        if start.strict && !begins && !self.may_ask(&request) {
            let why = format!("{method} came before notifications/initialized");
            let error = RpcError::new(INVALID_REQUEST, why);
            out.answer(&message::reply(&request.id, Err(error)));
            return;
        }
        match method {
            "initialize" | "server/discover" => {
                let capabilities = request.params.get("capabilities");
                if tasks::are_followed(capabilities) {
                    self.follows_tasks.store(true, Ordering::Relaxed);
                }
                self.spawn(handshake::answer(
                    Arc::clone(&self.server),
                    request,
                    out.clone(),
                ));
            }
            "ping" if stateless.is_none() => {
                out.answer(&message::reply(&request.id, Ok(json!({}))))
            }
            "tools/list" => {
                self.spawn(tools::answer(
                    Arc::clone(&self.server),
                    request,
                    out.clone(),
                ));
            }
            "tools/call" => self.call(request, out).await,
            "tasks/get" | "tasks/update" | "tasks/cancel" => {
                if let Some(answer) = tasks::answer(&self.server, &request) {
                    out.answer(&message::reply(&request.id, answer));
                }
            }
            _ => out.answer(&message::reply(&request.id, fixed::answer(&request))),
        }
    }

    fn may_ask(&self, request: &Request) -> bool {
        request.method == "ping"
            || request.is_stateless()
            || self.initialized.load(Ordering::Relaxed)
    }

    async fn call(self: &Arc<Self>, request: Request, out: &Outbox) {
        let id = request.id.clone();
        let call = match Call::new(Arc::clone(self), request, out.clone()) {
            Ok(call) => call,
            Err(error) => return out.answer(&message::reply(&id, Err(error))),
        };
        // Registered before the next message is read, so that a cancel always finds it.
        let (cancel, cancelled) = oneshot::channel();
        lock(&self.live).insert(id.to_string(), cancel);
        if call.is_blocking() {
            call.run(cancelled).await;
        } else {
            self.spawn(call.run(cancelled));
        }
    }

    /// Cancels whatever runs: the client has gone, which says as much from 2026-07-28 on.
    pub(crate) fn cancel_all(&self) {
        for (_, cancel) in lock(&self.live).drain() {
            // A call that just ended needs no cancel.
            let _ = cancel.send(());
        }
    }

    /// Whether the client said, in its handshake or in this request, that it follows tasks.
    pub(crate) fn follows_tasks(&self, request: &Request) -> bool {
        let meta = request.params.get("_meta");
        let own = meta.and_then(|meta| meta.get("io.modelcontextprotocol/clientCapabilities"));
        self.follows_tasks.load(Ordering::Relaxed) || tasks::are_followed(own)
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        lock(&self.live).len()
    }

    /// Forgets a call: from now on a cancel does not reach it.
    pub(crate) fn ended(&self, id: &Value) {
        lock(&self.live).remove(&id.to_string());
    }

    fn notice(&self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.initialized.store(true, Ordering::Relaxed),
            "notifications/cancelled" => {
                let id = params.get("requestId").unwrap_or(&Value::Null);
                if let Some(cancel) = lock(&self.live).remove(&id.to_string()) {
                    // A call that just ended needs no cancel.
                    let _ = cancel.send(());
                }
            }
            _ => {}
        }
    }

    /// Sends the client a request and waits for what it replies (`result` or `error`).
    pub(crate) async fn ask(&self, method: &str, params: &Value, out: &Outbox) -> Value {
        let id = format!("probe-{}", self.next_ask.fetch_add(1, Ordering::Relaxed));
        let (reply, replied) = oneshot::channel();
        lock(&self.asked).insert(id.clone(), reply);
        out.message(&message::request(&id, method, params));
        replied.await.unwrap_or(Value::Null)
    }

    fn replied(&self, id: &Value, body: Value) {
        let waiting = id.as_str().and_then(|id| lock(&self.asked).remove(id));
        if let Some(reply) = waiting {
            // The call that asked may have been cancelled meanwhile.
            let _ = reply.send(body);
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all that runs for this client.
    pub(crate) fn stop(&self) {
        lock(&self.tasks).abort_all();
    }
}
