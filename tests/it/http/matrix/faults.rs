//! The faults, and what a single attempt makes of each.

use serde_json::{Value, json};
use steadfast::Class;

use super::Transport;

/// One fault, and what a single attempt makes of it.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// The call's arguments.
    pub(super) call: Value,
    /// `None` is success.
    pub(super) class: Option<Class>,
    pub(super) executes: usize,
}

/// All faults that this transport can have.
pub(super) fn faults(transport: Transport) -> Vec<Fault> {
    let mut faults = answers();
    if transport.is_http() {
        faults.extend(over_http(transport));
    } else {
        faults.extend(over_a_stream());
    }
    faults
}

/// What every transport carries in the same way.
fn answers() -> Vec<Fault> {
    vec![
        fault("none", json!({}), None, 1),
        fault("answers twice", json!({"answer_again": 1}), None, 1),
        fault("result is an error", json!({"is_error": "no"}), None, 1),
        fault(
            "answers with an error",
            json!({"rpc_error": -32603}),
            Some(Class::Answered),
            1,
        ),
        fault(
            "silent before executing",
            json!({"delay_before_ms": 60_000}),
            Some(Class::Timeout),
            0,
        ),
        fault(
            "silent after executing",
            json!({"stall": true}),
            Some(Class::Timeout),
            1,
        ),
    ]
}

fn over_a_stream() -> Vec<Fault> {
    let torn = json!({"raw": "{\"jsonrpc\":\"2.0\",\"id\":{id},\"res", "no_newline": true,
        "exit_answered": 3});
    let unknown = Some(Class::Unknown);
    // Anybody could have sent the line: nobody's call ends by it.
    let silence = Some(Class::Timeout);
    vec![
        fault(
            "ends before executing",
            json!({"exit_before": 3}),
            unknown,
            0,
        ),
        fault("ends after executing", json!({"exit_after": 3}), unknown, 1),
        fault("ends in the answer", torn, unknown, 1),
        fault("another id", json!({"answer_id": 4711}), silence, 1),
        fault("no JSON", json!({"raw": "this is no JSON"}), silence, 1),
    ]
}

fn over_http(transport: Transport) -> Vec<Fault> {
    let unknown = Some(Class::Unknown);
    let answered = Some(Class::Answered);
    let http = |name, knobs: Value, class, executes| {
        fault(name, json!({ "http": knobs }), class, executes)
    };
    let html = json!({"content_type": "text/html", "body": "<html>", "execute": true});
    let elsewhere = json!({"status": 307, "headers": {"Location": "http://127.0.0.1:1/"}});
    // Without sessions there is none that could be lost.
    let missing = match transport {
        Transport::HttpStateless => answered,
        _ => Some(Class::NotSent),
    };
    let mut faults = vec![
        http("ends before executing", json!({"cut": "reset"}), unknown, 0),
        http(
            "ends after executing",
            json!({"cut": "reset", "at": "executed"}),
            unknown,
            1,
        ),
        http(
            "ends in the answer",
            json!({"cut": "close", "at": "half"}),
            unknown,
            1,
        ),
        fault("another id", json!({"answer_id": 4711}), unknown, 1),
        fault("no JSON", json!({"raw": "this is no JSON"}), unknown, 1),
        http(
            "closed before executing",
            json!({"cut": "close"}),
            unknown,
            0,
        ),
        http(
            "closed in the head",
            json!({"cut": "close", "at": "head"}),
            unknown,
            1,
        ),
        http(
            "half an answer, well framed",
            json!({"cut": "end", "at": "half"}),
            unknown,
            1,
        ),
        http(
            "silent in the head",
            json!({"cut": "stall", "at": "head"}),
            Some(Class::Timeout),
            1,
        ),
        http(
            "silent after the head",
            json!({"cut": "stall", "at": "begun"}),
            Some(Class::Timeout),
            1,
        ),
        http(
            "202 and nothing after",
            json!({"status": 202, "execute": true}),
            unknown,
            1,
        ),
        http("HTML", html, unknown, 1),
        http(
            "another JSON",
            json!({"body": "{}", "execute": true}),
            unknown,
            1,
        ),
        http("400", json!({"status": 400, "body": "no"}), answered, 0),
        http("401", json!({"status": 401}), answered, 0),
        http("403", json!({"status": 403}), answered, 0),
        http("404", json!({"status": 404}), missing, 0),
        http("429", json!({"status": 429}), Some(Class::Overloaded), 0),
        http(
            "500 after executing",
            json!({"status": 500, "execute": true}),
            unknown,
            1,
        ),
        http("503", json!({"status": 503}), unknown, 0),
        http("redirected elsewhere", elsewhere, answered, 0),
    ];
    if transport == Transport::HttpEvents {
        let ids = json!({"cut": "close", "at": "begun", "events": {"ids": true, "priming": true, "retry_ms": 1}});
        faults.push(http(
            "stream ends without an id",
            json!({"cut": "end", "at": "begun"}),
            unknown,
            1,
        ));
        faults.push(http("stream breaks and is resumed", ids, None, 1));
    }
    faults
}

pub(super) fn fault(
    name: &'static str,
    call: Value,
    class: Option<Class>,
    executes: usize,
) -> Fault {
    Fault {
        name,
        call,
        class,
        executes,
    }
}
