//! What a server does with a request.

use std::time::Duration;

use serde_json::{Value, json};

use super::Seen;

/// What is done, step by step. After the last, the connection can be used again, unless a
/// step says otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write(Vec<u8>),
    Wait(Duration),
    /// Ends the connection.
    Close,
    /// Ends it so that the other side gets an error.
    Reset,
    /// Does nothing until the other side goes.
    Hang,
}

// === impl Reply ===

impl Reply {
    pub(crate) fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self {
            steps: steps.into(),
        }
    }

    /// A whole response.
    pub(crate) fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!(
            "HTTP/1.1 {status} Said So\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        Self::new([Step::Write(format!("{head}\r\n{body}").into_bytes())])
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::status(
            200,
            &[("content-type", "application/json")],
            &body.to_string(),
        )
    }

    /// The answer of a tool that says `text`.
    pub(crate) fn says(seen: &Seen, text: &str) -> Self {
        Self::json(&answer(seen, text))
    }

    /// The head of a stream of events, to which more is added.
    pub(crate) fn events() -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        Self::new([Step::Write(head.into())])
    }

    /// More of a stream, as one chunk.
    pub(crate) fn chunk(mut self, text: &str) -> Self {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.steps.push(Step::Write(chunk.into_bytes()));
        self
    }

    pub(crate) fn event(self, message: &Value) -> Self {
        self.chunk(&format!("data: {message}\n\n"))
    }

    pub(crate) fn event_with_id(self, id: &str, message: &Value) -> Self {
        self.chunk(&format!("id: {id}\ndata: {message}\n\n"))
    }

    /// The end of a stream.
    pub(crate) fn end(mut self) -> Self {
        self.steps.push(Step::Write(b"0\r\n\r\n".to_vec()));
        self
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Does nothing before this for a while.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.steps.insert(0, Step::Wait(wait));
        self
    }
}

/// The answer of a tool that says `text`, as JSON.
pub(crate) fn answer(seen: &Seen, text: &str) -> Value {
    result(seen, &json!({"content": [{"type": "text", "text": text}]}))
}

pub(crate) fn result(seen: &Seen, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result})
}
