use rmcp::model::{
    ClientRequest, ClientResult, GetExtensions as _, JsonRpcMessage, NumberOrString, PingRequest,
    RequestId, ServerResult,
};
use serde_json::{Value, json};
use steadfast_classify::{Flight, Stage};

use super::{
    exchange::{Exchange, Rx, Tx},
    reader::answered,
    step::{Incoming, Next},
    *,
};

const ID: RequestId = NumberOrString::Number(7);

/// A request in the outbox, and its flight.
fn asking() -> (Exchange, Flight) {
    let (exchange, trace) = traced();
    (exchange, trace.flight().clone())
}

fn traced() -> (Exchange, Arc<Trace>) {
    let flight = Flight::new();
    assert!(flight.queued());
    let mut request = ClientRequest::PingRequest(PingRequest::default());
    let trace = Arc::new(Trace::new(flight));
    request.extensions_mut().insert(Arc::clone(&trace));
    let mut exchange = Exchange::default();
    let reply = exchange.send(JsonRpcMessage::request(request, ID));
    assert!(reply.expect("it is open").is_none());
    (exchange, trace)
}

fn answer() -> Rx {
    JsonRpcMessage::response(ServerResult::empty(()), ID)
}

fn is_written(exchange: &mut Exchange) -> bool {
    matches!(exchange.next().0, Next::Write(_))
}

#[test]
fn answer_to_a_question_that_was_not_sent_yet_is_none() {
    let (mut exchange, flight) = asking();

    let early = exchange.receive(answer(), None);

    assert!(matches!(early, Incoming::Taken), "{early:?}");
    assert_eq!(flight.stage().0, Stage::Queued);
    assert_eq!(exchange.traffic().late_answers, 1);
    assert!(is_written(&mut exchange));
    let answered = exchange.receive(answer(), None);
    assert!(matches!(answered, Incoming::Forward(_)), "{answered:?}");
    assert_eq!(flight.stage().0, Stage::Answered);
}

#[test]
fn answer_that_cannot_be_read_ends_the_wait_for_it() {
    let (mut exchange, flight) = asking();
    let (_, early) = exchange.junk(Some(ID), None);
    assert!(matches!(early, Incoming::Taken), "{early:?}");
    assert!(is_written(&mut exchange));

    let (count, incoming) = exchange.junk(Some(ID), None);

    let Incoming::Forward(JsonRpcMessage::Response(response)) = incoming else {
        panic!("nobody is told: {incoming:?}");
    };
    assert_eq!((response.id, count), (ID, 2));
    assert_eq!(flight.stage().0, Stage::Answered);
    assert_eq!(exchange.traffic().pending, 0);
}

#[test]
fn answers_to_a_server_that_does_not_read_are_bounded() {
    let mut exchange = Exchange::default();
    let mut answer = || {
        let message: Tx = JsonRpcMessage::response(ClientResult::empty(()), ID);
        exchange.send(message).expect("it is open");
    };
    (0..10_000).for_each(|_| answer());

    let kept = std::iter::from_fn(|| is_written(&mut exchange).then_some(()));
    assert_eq!(kept.count(), 4096);
    // It reads again: it is answered again.
    let message = JsonRpcMessage::response(ClientResult::empty(()), ID);
    exchange.send(message).expect("it is open");
    assert!(is_written(&mut exchange));
}

#[test]
fn lines_that_are_no_message_may_be_answers_all_the_same() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{}}}"#,
        "[".repeat(200) + &"]".repeat(200)
    );
    for (line, want) in [
        (deep.as_str(), true),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"n":1e999}}"#, true),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"s":"\ud800"}}"#, true),
        (r#"{"result":{},"error":{},"id":7,"jsonrpc":"2.0"}"#, true),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":99999999999,"message":""}}"#,
            true,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"error":"no object"}"#, true),
        // A request, a line of a log, half a message, no message at all.
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, false),
        (r#"{"id":7,"level":30,"msg":"hello"}"#, false),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"#, false),
        (r#"{"jsonrpc":"2.0","result":{}}"#, false),
        ("Welcome!", false),
    ] {
        let found = answered(line.as_bytes());
        assert_eq!(found, want.then_some(ID), "{line}");
    }
}

#[test]
fn a_task_that_nobody_heard_of_is_called_off() {
    let begun = json!({"jsonrpc": "2.0", "id": 7, "result": {"resultType": "task",
        "taskId": "t-1", "status": "working", "createdAt": "", "lastUpdatedAt": "",
        "ttlMs": null}});
    let begun: Rx = serde_json::from_value(begun).expect("a message");
    // Answered before its caller left, who did not hear of it; and after.
    for heard_first in [true, false] {
        let (mut exchange, trace) = traced();
        assert!(is_written(&mut exchange));
        if heard_first {
            exchange.receive(begun.clone(), None);
        }
        let _ = exchange.abandon(&trace, "left");
        if !heard_first {
            exchange.receive(begun.clone(), None);
        }

        let written: Vec<Value> = std::iter::from_fn(|| match exchange.next().0 {
            Next::Write(outgoing) => serde_json::to_value(&outgoing.message).ok(),
            _ => None,
        })
        .collect();
        let cancels = written.iter().filter(|m| m["method"] == "tasks/cancel");
        let cancels: Vec<_> = cancels.collect();
        assert_eq!(cancels.len(), 1, "{heard_first}: {written:?}");
        assert_eq!(cancels[0]["params"]["taskId"], "t-1");

        // Its answer is of no interest to anybody.
        let id = cancels[0]["id"].clone();
        let done = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let done = serde_json::from_value(done).expect("a message");
        assert!(matches!(exchange.receive(done, None), Incoming::Taken));
        assert_eq!(
            exchange.traffic().late_answers,
            u64::from(!heard_first),
            "of the call"
        );
    }
}

#[test]
fn a_task_is_called_off_on_a_wire_that_closes() {
    let (mut exchange, _) = asking();
    assert!(exchange.cancel_task("t-1"));

    exchange.close();

    assert!(!exchange.cancel_task("t-2"), "it takes nothing more");
    assert!(is_written(&mut exchange), "this one still leaves");
    assert!(matches!(exchange.next().0, Next::Closed));
}
