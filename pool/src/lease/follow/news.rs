//! What an answer about a task means for the call that it is.

use rmcp::model::{
    CallToolResult, DetailedTask, ErrorCode, ErrorData, InputRequests, JsonObject, TaskPayload,
};
use serde_json::Value;
use steadfast_classify::{
    Class, Failure,
    mcp::{ServerError, server_failure},
};

use crate::TaskEnded;

/// What an answer about a task means for the call that it is.
pub(super) enum News {
    Working,
    Asks(InputRequests),
    Over(Over),
}

/// How a call ends that is a task.
pub(super) enum Over {
    /// As the task did.
    Ended(Result<CallToolResult, Failure>),
    /// The task goes on, and the call does not.
    GivenUp(Failure),
}

// === impl Over ===

impl Over {
    /// What a server does not know any more whose time is up has expired.
    pub(super) fn by(self, expired: bool) -> Self {
        match self {
            Self::Ended(Err(failure)) if expired && is_unknown(&failure) => {
                Self::Ended(Err(ended(Class::Answered, TaskEnded::Expired)))
            }
            over => over,
        }
    }
}

pub(super) fn heed(told: DetailedTask) -> News {
    News::Over(Over::Ended(match told.payload {
        TaskPayload::Completed { result } => read(result),
        TaskPayload::Failed { error } => Err(failed(error)),
        TaskPayload::Cancelled => Err(ended(Class::Cancelled, TaskEnded::Cancelled)),
        TaskPayload::InputRequired { input_requests } => return News::Asks(input_requests),
        _ => return News::Working,
    }))
}

/// Whether a request that came to nothing can be made again.
pub(super) fn may_ask_again(failure: &Failure) -> bool {
    match failure.class() {
        _ if failure.is_permanent() => false,
        Class::Answered => code(failure) == Some(ErrorCode::INTERNAL_ERROR),
        Class::Rejected | Class::Cancelled => false,
        _ => true,
    }
}

/// What a request means that came to nothing for good.
pub(super) fn answered(failure: Failure) -> Over {
    match failure.class() {
        Class::Answered if code(&failure) == Some(ErrorCode::INVALID_PARAMS) => {
            Over::Ended(Err(ended(Class::Unknown, TaskEnded::Unknown)))
        }
        Class::Answered | Class::Rejected | Class::Cancelled => Over::GivenUp(failure),
        _ => Over::GivenUp(lost(failure)),
    }
}

/// Nobody can tell what became of a task that cannot be asked about.
pub(super) fn lost(last: Failure) -> Failure {
    ended(Class::Unknown, TaskEnded::Lost(last))
}

pub(super) fn ended(class: Class, how: TaskEnded) -> Failure {
    Failure::new(class).with_source(how)
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

fn is_unknown(failure: &Failure) -> bool {
    matches!(failure.find_source(), Some(TaskEnded::Unknown))
}

fn code(failure: &Failure) -> Option<ErrorCode> {
    let error = failure.find_source::<ServerError>();
    error.map(|error| ErrorCode(error.code()))
}
