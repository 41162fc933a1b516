//! One tool call, from its request to its answer.

use std::io;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::knobs::{CallKnobs, OnCancel};
use super::ledger::Execution;
use super::message::{self, INTERNAL_ERROR, INVALID_PARAMS, Request, RpcError};
use super::outbox::{Out, Outbox};
use super::pause::pause;
use super::server::Executed;
use super::session::Session;
use super::{progress, tools};

/// The error code of a request that its client cancelled.
const CANCELLED: i64 = -32800;

#[derive(Debug)]
pub(crate) struct Call {
    session: Arc<Session>,
    out: Outbox,
    request: Request,
    tool: String,
    knobs: CallKnobs,
}

// === impl Call ===

impl Call {
    /// Reads the request: which tool, which faults.
    pub(crate) fn new(
        session: Arc<Session>,
        request: Request,
        out: Outbox,
    ) -> Result<Self, RpcError> {
        let server = &session.server;
        let tool = request.params.get("name").and_then(Value::as_str);
        let tool = tool.unwrap_or_default().to_owned();
        if !tools::names(&server.list()).any(|name| name == tool) {
            return Err(RpcError::new(INVALID_PARAMS, format!("no tool {tool:?}")));
        }
        let none = Map::new();
        let arguments = request.params.get("arguments").and_then(Value::as_object);
        let knobs = server
            .knobs
            .for_call(&tool, arguments.unwrap_or(&none))
            .map_err(|error| RpcError::new(INVALID_PARAMS, format!("wrong knobs: {error}")))?;
        let knobs = match knobs.times {
            None => knobs,
            Some(times) => {
                let earlier = server.count_call(knobs.tag.as_ref().unwrap_or(&tool));
                let faulty = earlier.map_err(|error| broken(&error))? < times;
                if faulty { knobs } else { knobs.healthy() }
            }
        };
        Ok(Self {
            session,
            out,
            request,
            tool,
            knobs,
        })
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.knobs.blocking
    }

    pub(crate) async fn run(self, cancelled: oneshot::Receiver<()>) {
        let outcome = tokio::select! {
            biased;
            () = self.heed(cancelled) => self.cut_short(),
            outcome = self.perform() => Some(outcome),
        };
        self.session.ended(&self.request.id);
        let Some(outcome) = outcome else { return };
        Answer::new(&self.request.id, &self.knobs, outcome).send(&self.out);
        let exits = self.session.server.answered(self.token());
        let limit = exits.then_some(self.session.server.knobs.process.exit_code);
        if let Some(code) = self.knobs.exit_answered.or(limit) {
            self.out.push(Out::Exit(code));
        }
    }

    /// Ends when the call is cancelled and its knobs say that this matters.
    async fn heed(&self, cancelled: oneshot::Receiver<()>) {
        if cancelled.await.is_err() || self.knobs.on_cancel == OnCancel::Ignore {
            std::future::pending::<()>().await;
        }
    }

    fn cut_short(&self) -> Option<Result<Value, RpcError>> {
        match self.knobs.on_cancel {
            OnCancel::Stop | OnCancel::Ignore => None,
            OnCancel::Answer => Some(self.result(None, None)),
            OnCancel::Error => Some(Err(RpcError::new(CANCELLED, "cancelled"))),
        }
    }

    async fn perform(&self) -> Result<Value, RpcError> {
        let knobs = &self.knobs;
        if let Some(questions) = self.questions() {
            return Ok(questions);
        }
        pause(knobs.delay_before_ms).await;
        let down = self.session.server.knobs.process.is_down().then_some(1);
        self.exit(knobs.exit_before.or(down)).await;
        let executed = self.execute().map_err(|error| broken(&error))?;
        self.exit(knobs.exit_after).await;
        self.disturb().await;
        let replied = match &knobs.ask {
            None => None,
            Some(method) => {
                let params = knobs.ask_params.clone().unwrap_or_else(|| json!({}));
                Some(self.session.ask(method, &params, &self.out).await)
            }
        };
        if let Some(task) = &knobs.task
            && self.session.follows_tasks(&self.request)
        {
            let result = self.result(Some(executed), replied.as_ref())?;
            let begun = self.session.server.tasks.begin(task, result);
            return begun.map_err(|error| broken(&error));
        }
        progress::linger(&self.session.server, knobs, self.token(), &self.out).await;
        self.result(Some(executed), replied.as_ref())
    }

    /// What is to be asked before the call is run, if there is more of it.
    fn questions(&self) -> Option<Value> {
        let state = self.request.params.get("requestState");
        let done = state.and_then(Value::as_str).unwrap_or("0").parse();
        let done: usize = done.unwrap_or(usize::MAX);
        let questions = self.knobs.rounds.get(done)?;
        Some(json!({
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": (done + 1).to_string(),
        }))
    }

    /// Ends the process if there is a code; nothing of this call happens after that.
    async fn exit(&self, code: Option<i32>) {
        if let Some(code) = code {
            self.session.server.exit(code);
            std::future::pending::<()>().await;
        }
    }

    fn execute(&self) -> io::Result<Executed> {
        let dedup = self.session.server.knobs.dedup.as_ref();
        let meta = self.request.params.get("_meta");
        let key = dedup.and_then(|name| meta?.get(name)?.as_str());
        self.session.server.execute(Execution {
            tool: self.tool.clone(),
            tag: self.knobs.tag.clone(),
            id: self.request.id.clone(),
            pid: std::process::id(),
            seq: 0,
            key: key.map(str::to_owned),
        })
    }

    async fn disturb(&self) {
        let knobs = &self.knobs;
        if knobs.stderr_line_bytes > 0 {
            super::writer::flood_stderr(knobs.stderr_line_bytes, None).await;
        }
        if knobs.stdout_line_bytes > 0 {
            self.out.push(Out::Flood(knobs.stdout_line_bytes));
        }
        if knobs.close_stdout {
            self.out.push(Out::Close);
        }
        if let Some(notices) = knobs.change_list {
            self.session.server.change_list();
            for _ in 0..notices {
                let method = "notifications/tools/list_changed";
                self.out.message(&message::notice(method, &json!({})));
            }
        }
    }

    /// The progress token that the client gave.
    fn token(&self) -> Option<&Value> {
        self.request.params.pointer("/_meta/progressToken")
    }

    fn result(
        &self,
        executed: Option<Executed>,
        replied: Option<&Value>,
    ) -> Result<Value, RpcError> {
        let knobs = &self.knobs;
        if knobs.rpc_error.is_some() || knobs.rpc_message.is_some() {
            let code = knobs.rpc_error.unwrap_or(INTERNAL_ERROR);
            return Err(RpcError {
                data: knobs.rpc_data.clone(),
                ..RpcError::asked(code, knobs.rpc_message.as_ref())
            });
        }
        Ok(match self.tool.as_str() {
            _ if knobs.result.is_some() => json!(knobs.result),
            "env" => super::answer::structured(&environment()),
            "pid" => super::answer::structured(&self.process()),
            _ => super::answer::text(
                knobs,
                &json!({
                    "tool": self.tool,
                    "tag": knobs.tag,
                    "pid": std::process::id(),
                    "seq": match executed { Some(Executed::Now(seq)) => Some(seq), _ => None },
                    "repeated": executed == Some(Executed::Before),
                    "echo": knobs.echo,
                    "replied": replied,
                    "told": self.request.params.get("inputResponses"),
                }),
            ),
        })
    }

    fn process(&self) -> Value {
        #[cfg(unix)]
        let parent = Some(std::os::unix::process::parent_id());
        #[cfg(not(unix))]
        let parent: Option<u32> = None;
        json!({
            "pid": std::process::id(),
            "parent": parent,
            "helper": self.session.server.helper.get(),
        })
    }
}

fn environment() -> Value {
    std::env::vars_os()
        .map(|(name, value)| {
            let value = value.to_string_lossy().into_owned();
            (name.to_string_lossy().into_owned(), Value::String(value))
        })
        .collect::<Map<_, _>>()
        .into()
}

fn broken(error: &io::Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, format!("the probe's own files: {error}"))
}
