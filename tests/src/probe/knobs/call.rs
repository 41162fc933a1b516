//! Faults of a tool call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TaskKnobs;

use super::HttpFault;

/// What one tool call does: for all calls, for one tool's, or as a call's own arguments.
///
/// In this order: `rounds`, `delay_before_ms`, `exit_before`, the execution (its ledger line), `exit_after`,
/// floods, `close_stdout`, `change_list`, `ask`, `task`, progress and `delay_ms`, `stall`, the answer,
/// `exit_answered`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallKnobs {
    /// A mark that the ledger, the events and the answer repeat.
    pub tag: Option<String>,
    /// A value that the answer repeats.
    pub echo: Option<Value>,
    /// Length of the answer's text.
    pub bytes: Option<usize>,
    /// Length of the answer's whole line with its line feed.
    pub line_bytes: Option<usize>,
    /// The faults below hold only for the first so many calls of this tag (without a tag: of this
    /// tool). Counted in the `state` file if there is one, else in this process.
    pub times: Option<u64>,

    /// Wait so long before executing.
    pub delay_before_ms: u64,
    /// Wait so long between executing and answering.
    pub delay_ms: u64,
    /// Wait up to so long in addition, at random.
    pub jitter_ms: u64,
    /// Wait `slow_ms` in addition in so many of 100 calls, at random.
    pub slow_percent: u8,
    /// See `slow_percent`.
    pub slow_ms: u64,
    /// Execute and never answer.
    pub stall: bool,
    /// Handle nothing else until this call has ended.
    pub blocking: bool,
    /// What a cancel notice does.
    pub on_cancel: OnCancel,
    /// Progress notices before the answer.
    pub progress: Option<ProgressKnobs>,

    /// Exit with this code instead of executing.
    pub exit_before: Option<i32>,
    /// Exit with this code after executing, without an answer.
    pub exit_after: Option<i32>,
    /// Exit with this code as soon as the answer is written.
    pub exit_answered: Option<i32>,
    /// Close stdout after executing and live on.
    pub close_stdout: bool,
    /// Write one line of so many bytes to stdout before answering.
    pub stdout_line_bytes: u64,
    /// Write one line of so many bytes to stderr before answering.
    pub stderr_line_bytes: u64,

    /// Answer with `isError` and this text.
    pub is_error: Option<String>,
    /// Answer with this JSON-RPC error code.
    pub rpc_error: Option<i64>,
    /// The text of that error.
    pub rpc_message: Option<String>,
    /// The data of that error.
    pub rpc_data: Option<Value>,
    /// Answer with this result as it is.
    pub result: Option<Value>,
    /// Write this line instead of the answer; `{id}` becomes the call's id.
    pub raw: Option<String>,
    /// Answer under this id.
    pub answer_id: Option<Value>,
    /// Answer so many times in addition.
    pub answer_again: u32,
    /// Put bytes into the answer's text that are no UTF-8.
    pub bad_utf8: bool,
    /// Leave the line feed after the answer out.
    pub no_newline: bool,

    /// Change the tool list and tell it in so many notices.
    pub change_list: Option<u32>,
    /// Send the client this request (`roots/list`, `sampling/createMessage`, …), wait for its
    /// reply and put it into the answer.
    pub ask: Option<String>,
    /// The parameters of that request.
    pub ask_params: Option<Value>,
    /// Run as a task, where the client follows them.
    pub task: Option<TaskKnobs>,
    /// Answer with these questions, one set after the other, before anything else happens; the
    /// last answers are in the result.
    pub rounds: Vec<Map<String, Value>>,

    /// Over HTTP: what else becomes of this call's request.
    pub http: Option<Box<HttpFault>>,
}

/// What a cancel notice for a running call does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// The call ends without an answer, as it should.
    #[default]
    Stop,
    /// Nothing: the answer comes when it is ready.
    Ignore,
    /// The call is answered at once.
    Answer,
    /// The call is answered at once with a JSON-RPC error.
    Error,
}

/// Progress notices of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgressKnobs {
    /// Time between two notices.
    pub every_ms: u64,
    /// How many; absent: until the call is answered.
    pub count: Option<u64>,
    /// The token they carry.
    pub token: TokenSource,
}

/// Where the token of a progress notice comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// From the request; without one in it nothing is sent.
    #[default]
    Asked,
    /// The server makes one up.
    Invented,
    /// From a call that has been answered; nothing is sent before there is one.
    Finished,
}

// === impl CallKnobs ===

impl CallKnobs {
    /// What is left once the faults have been had often enough.
    pub(crate) fn healthy(self) -> Self {
        Self {
            tag: self.tag,
            echo: self.echo,
            bytes: self.bytes,
            line_bytes: self.line_bytes,
            ..Self::default()
        }
    }
}
