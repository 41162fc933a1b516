//! What comes back, and what it means for a call that may not be repeated.

use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use steadfast_classify::{Class, Failure, mcp::ServerError};
use steadfast_pool::{HttpRefused, Lease};

use crate::support::{Reply, Seen, Server, Step, acquired, answer, call, config, pool, soon, text};

/// A call to tool `w` that is replied to like this, on a connection that goes on working.
async fn replied(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Failure {
    let server = Server::start(move |seen| (seen.tool()? == "w").then(|| reply(seen))).await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let failure = call(&lease, "w").await.expect_err("it is no answer");

    assert_eq!(text(&good(&lease).await), "done", "after {failure}");
    assert_eq!(server.count("initialize"), 1, "after {failure}");
    let sent = server.of("tools/call");
    let orders = sent.iter().filter(|seen| seen.tool() == Some("w")).count();
    assert_eq!(orders, 1, "it was repeated: {failure}");
    failure
}

async fn good(lease: &Lease) -> rmcp::model::CallToolResult {
    call(lease, "r").await.expect("a good call after a bad one")
}

fn rpc_error(id: &Value, code: i32) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "said so"}}).to_string()
}

const JSON: (&str, &str) = ("content-type", "application/json");
const HTML: (&str, &str) = ("content-type", "text/html");

#[tokio::test]
async fn success_that_holds_no_answer_leaves_it_unknown() {
    type Case = (&'static str, fn(&Seen) -> Reply);
    let cases: [Case; 10] = [
        ("HTML", |_| {
            Reply::status(200, &[HTML], "<html>hello</html>")
        }),
        ("no JSON-RPC", |_| {
            Reply::status(200, &[JSON], "{\"ok\":true}")
        }),
        ("another id", |seen| {
            let mut wrong = answer(seen, "x");
            wrong["id"] = json!(4711);
            Reply::json(&wrong)
        }),
        ("another type of id", |seen| {
            let mut wrong = answer(seen, "x");
            wrong["id"] = json!(seen.body["id"].to_string());
            Reply::json(&wrong)
        }),
        ("an error without id", |_| {
            Reply::status(200, &[JSON], &rpc_error(&Value::Null, -32600))
        }),
        ("half an answer", |seen| {
            let whole = answer(seen, "x").to_string();
            Reply::status(200, &[JSON], &whole[..whole.len() / 2])
        }),
        ("nothing", |_| Reply::status(200, &[JSON], "")),
        ("202", |_| Reply::status(202, &[], "")),
        ("204", |_| Reply::status(204, &[], "")),
        ("a stream without it", |_| {
            Reply::events().chunk(": hm\n\n").end()
        }),
    ];
    for (what, reply) in cases {
        let failure = replied(reply).await;
        assert_eq!(failure.class(), Class::Unknown, "{what}: {failure}");
        assert!(failure.may_have_run(), "{what}");
    }
}

#[tokio::test]
async fn answers_without_content_type_and_in_batches_are_answers() {
    let server = Server::start(|seen| match seen.tool()? {
        "w" => Some(Reply::status(200, &[], &answer(seen, "bare").to_string())),
        _ => Some(Reply::json(&json!([answer(seen, "batch")]))),
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "bare");
    assert_eq!(text(&call(&lease, "r").await.unwrap()), "batch");
}

#[tokio::test]
async fn g03_a_page_or_a_foreign_answer_is_typed_and_harms_nobody_http() {
    let failure = replied(|_| Reply::status(401, &[], "log in first")).await;
    assert_eq!(failure.class(), Class::Answered);
    assert!(!failure.may_have_run());
    assert!(failure.to_string().contains("log in first"), "{failure}");
}

#[tokio::test]
async fn a03_a_5xx_leaves_it_unknown_and_keeps_the_session_http() {
    for (status, told, want) in [
        (500, None, None),
        (502, None, None),
        (503, Some("7"), Some(Duration::from_secs(7))),
        (504, None, None),
    ] {
        let failure = replied(move |_| {
            let told = told.map(|told| ("retry-after", told));
            Reply::status(status, told.as_slice(), "busy")
        })
        .await;
        assert_eq!(failure.class(), Class::Unknown, "{failure}");
        assert_eq!(failure.retry_after(), want, "{failure}");
        let refused = failure.find_source::<HttpRefused>().expect("the status");
        assert_eq!((refused.status(), refused.words()), (status, Some("busy")));
    }
}

#[tokio::test]
async fn h01_a_429_was_not_run_and_says_when_to_come_back_http() {
    let failure = replied(|_| Reply::status(429, &[("retry-after", "2")], "")).await;
    assert_eq!(failure.class(), Class::Overloaded);
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(2)));
    assert!(!failure.may_have_run());

    // A date that is long past is no wait at all.
    let past = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
    let failure = replied(move |_| Reply::status(429, &[past], "")).await;
    assert_eq!(failure.class(), Class::Overloaded);
    assert_eq!(failure.retry_after(), Some(Duration::ZERO));

    let error = rpc_error(&json!(1), -32603);
    let failure = replied(move |_| Reply::status(429, &[JSON], &error)).await;
    assert_eq!(failure.class(), Class::Overloaded);
}

#[tokio::test]
async fn an_answer_with_a_5xx_is_taken_for_the_worse_of_both() {
    let failure = replied(|seen| {
        let error = rpc_error(&seen.body["id"], ErrorCode::INVALID_PARAMS.0);
        Reply::status(500, &[JSON], &error)
    })
    .await;
    // The code says that nothing ran; the status does not, and so it is not believed.
    assert_eq!(failure.class(), Class::Answered);
    assert!(failure.may_have_run());

    let other = rpc_error(&json!(99), ErrorCode::INVALID_PARAMS.0);
    let failure = replied(move |_| Reply::status(500, &[JSON], &other)).await;
    assert_eq!(failure.class(), Class::Unknown);
    assert!(failure.to_string().contains("said so"), "{failure}");
}

#[tokio::test]
async fn g05_a_400_with_an_error_in_its_body_is_an_answer_http() {
    for id in [None, Some(json!(0)), Some(Value::Null)] {
        let failure = replied(move |seen| {
            let id = id.clone().unwrap_or_else(|| seen.body["id"].clone());
            Reply::status(400, &[JSON], &rpc_error(&id, -32600))
        })
        .await;
        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
        let error = failure.find_source::<ServerError>().expect("the error");
        assert_eq!(error.code(), -32600);
        assert!(failure.to_string().contains("said so"), "{failure}");
    }
    let bare = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"said so"}}"#;
    let failure = replied(move |_| Reply::status(400, &[JSON], bare)).await;
    assert!(failure.find_source::<ServerError>().is_some(), "{failure}");
}

#[tokio::test]
async fn other_refusals_are_answers() {
    for (status, ran) in [
        (403, false),
        (405, false),
        (301, false),
        (302, true),
        (303, true),
        (409, true),
        (422, true),
    ] {
        let location = ("location", "/elsewhere");
        let failure = replied(move |_| Reply::status(status, &[location], "")).await;
        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert_eq!(failure.may_have_run(), ran, "{failure}");
        assert_eq!(failure.retry_after(), None);
    }
}

#[tokio::test]
async fn challenge_of_a_401_is_kept_and_not_printed() {
    let challenge = r#"Bearer realm="canary", error="invalid_token""#;
    let failure =
        replied(move |_| Reply::status(401, &[("www-authenticate", challenge)], "")).await;

    let refused = failure.find_source::<HttpRefused>().expect("the status");
    assert_eq!(refused.challenge(), Some(challenge));
    assert!(!format!("{failure} {failure:?} {refused:?}").contains("canary"));
}

#[tokio::test]
async fn d01_a_reset_after_execution_is_never_repeated_http() {
    type Case = (&'static str, fn(&Seen) -> Reply);
    let cases: [Case; 5] = [
        ("reset", |_| Reply::new([Step::Reset])),
        ("closed", |_| Reply::new([Step::Close])),
        ("half a head", |_| {
            Reply::new([
                Step::Write(b"HTTP/1.1 200 OK\r\nconte".to_vec()),
                Step::Close,
            ])
        }),
        ("half a body", |_| {
            let half = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                        content-length: 500\r\n\r\n{\"jsonrpc\":";
            Reply::new([Step::Write(half.into()), Step::Close])
        }),
        ("half a stream", |_| {
            Reply::events().chunk("data: {").then(Step::Reset)
        }),
    ];
    for (what, reply) in cases {
        let failure = replied(reply).await;
        assert_eq!(failure.class(), Class::Unknown, "{what}: {failure}");
        assert!(
            !failure.to_string().contains("127.0.0.1"),
            "{what}: {failure}"
        );
    }
}

#[tokio::test]
async fn answer_that_is_too_large_is_typed() {
    let long = "content-length: 99999999\r\ncontent-type: application/json\r\n";
    let failure = replied(move |_| {
        Reply::new([
            Step::Write(format!("HTTP/1.1 200 OK\r\n{long}\r\n").into_bytes()),
            Step::Hang,
        ])
    })
    .await;
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert!(failure.to_string().contains("longer than"), "{failure}");

    let event = format!("data: {}", "x".repeat(1 << 20));
    let failure = replied(move |_| {
        let mut reply = Reply::events();
        for _ in 0..17 {
            reply = reply.chunk(&event);
        }
        reply.chunk("\n\n").end()
    })
    .await;
    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert!(failure.to_string().contains("longer than"), "{failure}");
}

#[tokio::test]
async fn body_of_an_error_that_does_not_end_is_not_waited_for() {
    let failure = replied(|_| {
        let head = "HTTP/1.1 500 Oh\r\ncontent-length: 100\r\n\r\nhalf";
        Reply::new([Step::Write(head.into()), Step::Hang])
    })
    .await;
    assert_eq!(failure.class(), Class::Unknown);
    assert!(failure.to_string().contains("half"), "{failure}");
}

#[tokio::test]
async fn server_that_is_away_was_not_asked_and_can_come_back() {
    let server = Server::good().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    let port = server.port();
    drop(server);
    // Its sockets are closed by then.
    tokio::task::yield_now().await;

    let failure = loop {
        // The first may still meet the old socket.
        let failure = call(&lease, "w").await.unwrap_err();
        if failure.class() == Class::NotSent {
            break failure;
        }
    };
    assert!(failure.to_string().contains("refused"), "{failure}");

    let listener = soon(tokio::net::TcpListener::bind(("127.0.0.1", port))).await;
    let server = Server::on(listener.expect("the port is free"), "2025-11-25", |_| None);
    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    // Nothing was lost but some calls.
    assert_eq!(server.count("initialize"), 0);
}

#[tokio::test]
async fn p04_a_connection_that_was_closed_while_idle_is_replaced_in_silence_http() {
    let server = Server::start(|seen| {
        let tool = seen.tool()?;
        (tool == "r").then(|| Reply::says(seen, "last").then(Step::Close))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    for _ in 0..5 {
        assert_eq!(text(&call(&lease, "r").await.unwrap()), "last");
        // Long enough for the end to be seen, as it is on any connection that is idle.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    }
    assert_eq!(server.count("tools/call"), 10);
}

/// The end of a connection that is idle may lie in the socket unread, while whoever runs
/// this is busy.
#[tokio::test]
async fn p04_a_connection_whose_end_nobody_has_read_yet_is_replaced_in_silence_http() {
    let (server, stop) = elsewhere();
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    for _ in 0..20 {
        assert_eq!(text(&call(&lease, "r").await.unwrap()), "last");
        // The thread sleeps, and nothing is read meanwhile.
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    }
    drop(stop);
}

/// A server on a thread of its own, which closes the connection with each answer of `r`.
fn elsewhere() -> (Server, tokio::sync::oneshot::Sender<()>) {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (started, server) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = Server::start(|seen| {
                let tool = seen.tool()?;
                (tool == "r").then(|| Reply::says(seen, "last").then(Step::Close))
            });
            started.send(server.await).unwrap();
            let _ = stopped.await;
        });
    });
    (server.recv().unwrap(), stop)
}
