//! Calls that the server runs as tasks.
//!
//! A task is asked about on whatever connection there is: it outlives the one it was begun
//! on, and a question that was lost can be asked again. The call itself is never made again.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorCode, ErrorData, GetTaskParams,
    JsonObject, Task, TaskPayload,
};
use serde_json::Value;
use steadfast_classify::{
    Call as _, Class, Failure, Flight, Phase,
    mcp::{ServerError, server_failure},
};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Lease, span::Request};
use crate::{
    Progress, TaskEnded, ToolCall,
    entry::{Station, Use},
    task::Followed,
};

/// How long the server may not be there to be asked, where the call does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tells the server that nobody waits for a task any more, unless it has ended.
struct Leave<'a> {
    station: &'a Station,
    task: Option<&'a str>,
}

/// What an answer about a task means for the call.
enum News {
    Working,
    Over(Over),
}

/// How a call ends that is a task.
enum Over {
    /// As the task did.
    Ended(Result<CallToolResult, Failure>),
    /// The task goes on, and the call does not.
    GivenUp(Failure),
}

// === impl Lease ===

impl Lease {
    /// Waits for the end of a task that a call began.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it tells the server that nobody waits for the task any more.
    pub(super) async fn follow(
        &self,
        created: CreateTaskResult,
        call: &ToolCall,
        flight: &Flight,
    ) -> Result<CallToolResult, Failure> {
        let task = created.task;
        let mut leave = Leave {
            station: self.seat.station(),
            task: Some(&task.task_id),
        };
        let ended = match self.until_over(&task, call, flight).await {
            Over::Ended(ended) => {
                leave.task = None;
                ended
            }
            Over::GivenUp(failure) => Err(failure),
        };
        drop(leave);
        // Whatever became of it: it was begun.
        ended.map_err(|failure| failure.with_may_have_run(true))
    }

    async fn until_over(&self, task: &Task, call: &ToolCall, flight: &Flight) -> Over {
        let mut followed = Followed::new(task, self.patience(call), Instant::now());
        let mut said = None;
        loop {
            {
                // The server said when to ask: until then the silence is not its.
                let _hold = followed.is_well().then(|| flight.hold());
                sleep_until(followed.next()).await;
            }
            let asked = Instant::now();
            let limit = followed.answer_limit(asked);
            let news = match self.ask_about(&task.task_id, limit).await {
                Ok(told) => {
                    flight.progress();
                    followed.heed(&told.task, Instant::now());
                    report(call, &told.task, &mut said);
                    heed(told)
                }
                Err(failure) if may_ask_again(&failure) => {
                    if followed.lose(&failure, asked, Instant::now()) {
                        News::Working
                    } else {
                        News::Over(Over::GivenUp(lost(failure)))
                    }
                }
                Err(failure) => News::Over(answered(failure)),
            };
            match news {
                News::Over(over) => return over.by(followed.is_expired(asked)),
                News::Working if followed.is_expired(asked) => {
                    return Over::GivenUp(ended(Class::Answered, TaskEnded::Expired));
                }
                News::Working => {}
            }
        }
    }

    /// How long the server of a call may not be there to be asked.
    fn patience(&self, call: &ToolCall) -> Duration {
        let limits = call.context().and_then(|context| context.limits());
        let read = limits.and_then(|limits| limits.read);
        read.or(self.config().timeout()).unwrap_or(PATIENCE)
    }

    /// Asks how a task is, once.
    async fn ask_about(&self, task: &str, limit: Duration) -> Result<DetailedTask, Failure> {
        let flight = Flight::new();
        // Claimed: if it is withdrawn, it was not sent.
        let _ = flight.queued();
        let ask = async {
            let connection = self.checkout(&flight, Use::GoesOn).await?;
            let params = GetTaskParams::new(task);
            let sent = flight.clone();
            connection
                .call(&flight, |link| link.get_task(params, sent))
                .await
        };
        let ask = async {
            let answered = timeout(limit, ask).await;
            answered.unwrap_or_else(|_| Err(Failure::new(Class::Timeout).with_phase(Phase::Read)))
        };
        let request = Request::other(self, "tasks/get", None, &flight);
        request.around(|_| None, ask).await
    }
}

// === impl Over ===

impl Over {
    /// What a server does not know any more whose time is up has expired.
    fn by(self, expired: bool) -> Self {
        match self {
            Self::Ended(Err(failure)) if expired && is_unknown(&failure) => {
                Self::Ended(Err(ended(Class::Answered, TaskEnded::Expired)))
            }
            over => over,
        }
    }
}

// === impl Leave ===

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(task) = self.task {
            self.station.cancel_task(task);
        }
    }
}

/// What a task says of itself, if it is something else than before.
fn report(call: &ToolCall, task: &Task, said: &mut Option<String>) {
    if task.status_message.is_some() && task.status_message != *said {
        said.clone_from(&task.status_message);
        if let Some(ties) = call.ties() {
            ties.report(Progress::said(task.status_message.clone()));
        }
    }
}

fn heed(told: DetailedTask) -> News {
    News::Over(match told.payload {
        TaskPayload::Completed { result } => Over::Ended(read(result)),
        TaskPayload::Failed { error } => Over::Ended(Err(failed(error))),
        TaskPayload::Cancelled => Over::Ended(Err(ended(Class::Cancelled, TaskEnded::Cancelled))),
        TaskPayload::InputRequired { .. } => Over::GivenUp(
            Failure::new(Class::Answered)
                .with_source("the task asks for input, and nobody here can give it"),
        ),
        _ => return News::Working,
    })
}

/// Whether a question that came to nothing can be asked again.
fn may_ask_again(failure: &Failure) -> bool {
    let code = failure.find_source::<ServerError>().map(ServerError::code);
    match failure.class() {
        _ if failure.is_permanent() => false,
        Class::Answered => code == Some(ErrorCode::INTERNAL_ERROR.0),
        Class::Rejected | Class::Cancelled => false,
        _ => true,
    }
}

/// What a question means that came to nothing for good.
fn answered(failure: Failure) -> Over {
    let code = failure.find_source::<ServerError>().map(ServerError::code);
    match failure.class() {
        Class::Answered if code == Some(ErrorCode::INVALID_PARAMS.0) => {
            Over::Ended(Err(ended(Class::Unknown, TaskEnded::Unknown)))
        }
        Class::Answered | Class::Rejected | Class::Cancelled => Over::GivenUp(failure),
        _ => Over::GivenUp(lost(failure)),
    }
}

/// Nobody can tell what became of a task that cannot be asked about.
fn lost(last: Failure) -> Failure {
    ended(Class::Unknown, TaskEnded::Lost(last))
}

/// What a task gave. A result without content is one all the same.
fn read(result: JsonObject) -> Result<CallToolResult, Failure> {
    if result
        .keys()
        .all(|key| key == "_meta" || key == "resultType")
    {
        return Ok(CallToolResult::default());
    }
    let result = serde_json::from_value(Value::Object(result));
    // The error would show what it could not read.
    result.map_err(|_| ended(Class::Unknown, TaskEnded::Unreadable))
}

fn failed(error: JsonObject) -> Failure {
    match serde_json::from_value::<ErrorData>(Value::Object(error)) {
        Ok(error) => server_failure(error, &[]),
        Err(_) => ended(Class::Answered, TaskEnded::Failed),
    }
}

fn ended(class: Class, how: TaskEnded) -> Failure {
    Failure::new(class).with_source(how)
}

fn is_unknown(failure: &Failure) -> bool {
    matches!(failure.find_source(), Some(TaskEnded::Unknown))
}
