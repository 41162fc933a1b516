//! Servers, and what stands before them, that behave as if they meant harm.

use std::{
    error::Error as _,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use secrecy::SecretString;
use serde_json::json;
use steadfast_classify::Class;
use steadfast_pool::{HttpConnect, ServerConfig, ToolCall};
use tower::ServiceExt as _;

use crate::support::{
    Reply, Seen, Server, Step, acquired, answer, call, config, pool, pool_with, soon, text,
};

#[tokio::test]
async fn a_404_that_answers_the_call_in_a_session_that_lives_is_no_lost_session() {
    for (code, ran) in [(-32001, true), (-32602, false)] {
        let server = Server::start(move |seen| {
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"],
                "error": {"code": code, "message": "no such order"}});
            (seen.tool()? == "w").then(|| Reply::status(404, &[], &error.to_string()))
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert_eq!(failure.may_have_run(), ran, "{failure}");
        assert!(failure.to_string().contains("no such order"), "{failure}");
        assert_eq!(text(&call(&lease, "r").await.unwrap()), "done");
        assert_eq!(server.count("initialize"), 1);
    }
}

#[tokio::test]
async fn a_404_that_answers_the_call_in_a_session_that_is_gone_begins_another() {
    let server = Server::start(|seen| {
        let old = seen.header("mcp-session-id") == Some("session-1");
        let gone = old && matches!(seen.kind().as_str(), "tools/call" | "ping");
        let error = json!({"jsonrpc": "2.0", "id": seen.body["id"],
            "error": {"code": -32001, "message": "Session not found"}});
        gone.then(|| Reply::status(404, &[], &error.to_string()))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let failure = call(&lease, "w").await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test]
async fn server_that_knows_no_pings_has_not_forgotten_the_session() {
    for status in [400, 404] {
        let server = Server::start(move |seen| {
            let code = match seen.tool() {
                Some("w") => -32000,
                _ if seen.kind() == "ping" => -32601,
                _ => return None,
            };
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"],
                "error": {"code": code, "message": "no"}});
            Some(Reply::status(status, &[], &error.to_string()))
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert_eq!(server.count("initialize"), 1, "{status}");
    }
}

#[tokio::test]
async fn words_of_a_refusal_quote_nothing_that_was_sent() {
    for status in [400, 401, 404, 500, 503] {
        let server = Server::start(move |seen| {
            let quoted = format!("Cannot POST {} with {:?}", seen.path, seen.headers);
            let error = json!({"jsonrpc": "2.0", "id": seen.body["id"],
                "error": {"code": -32603, "message": quoted}});
            let body = match seen.tool()? {
                "w" => quoted,
                _ => error.to_string(),
            };
            Some(Reply::status(status, &[], &body))
        })
        .await;
        let config = ServerConfig::http(
            "s",
            format!("{}/canary-path?key=canary-query", server.url()),
        )
        .header("x-key", SecretString::from("canary-header"))
        .header("authorization", SecretString::from("Bearer canary-token"));
        let pool = pool();
        let lease = acquired(&pool, &config.build().unwrap()).await;

        for tool in ["w", "r"] {
            let failure = call(&lease, tool).await.unwrap_err();

            let mut told = format!("{failure} {failure:?}");
            let mut cause = failure.source();
            while let Some(error) = cause {
                told += &format!("{error} {error:?}");
                cause = error.source();
            }
            assert!(
                told.contains("Cannot POST /mcp/[hidden]") || status == 404,
                "{told}"
            );
            assert!(!told.contains("canary"), "{told}");
            assert!(!told.contains("session-1"), "{told}");
        }
    }
}

/// Panics when it is asked for the second time.
#[derive(Debug, Default)]
struct Panics(AtomicUsize);

impl Resolve for Panics {
    fn resolve(&self, _: Name) -> Resolving {
        let nth = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(nth != 1, "a resolver with a fault");
        let addresses = [SocketAddr::from(([127, 0, 0, 1], 0))].into_iter();
        Box::pin(async { Ok(Box::new(addresses) as Addrs) })
    }
}

#[tokio::test]
async fn resolver_that_panics_once_costs_no_connection() {
    let server = Server::start(|seen| {
        let about = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": about});
        // So that what comes next needs another connection.
        let headers = [
            ("content-type", "application/json"),
            ("connection", "close"),
        ];
        let reply = Reply::status(200, &headers, &body.to_string()).then(Step::Close);
        (seen.kind() == "initialize").then_some(reply)
    })
    .await;
    let resolver = Arc::new(Panics::default());
    let http = HttpConnect::new()
        .with_client(move |client| client.dns_resolver(Arc::clone(&resolver)).no_proxy());
    let pool = pool_with(http);
    let config = ServerConfig::http("s", format!("http://server.test:{}/mcp", server.port()));
    let lease = acquired(&pool, &config.build().unwrap()).await;

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn server_that_falls_silent_anywhere_is_let_go_of_at_the_end() {
    for silent in [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "GET",
        "tools/call",
        "DELETE",
    ] {
        for drained in [true, false] {
            let server = Server::start(move |seen| {
                (seen.kind() == silent).then(|| Reply::new([Step::Hang]))
            })
            .await;
            let pool = pool();
            let session = pool.session("a");
            let lease = session.lease(&config(&server)).unwrap();
            let running = tokio::spawn(lease.oneshot(ToolCall::new("w")));
            if silent == "DELETE" {
                server.until("tools/call", 1).await;
            } else {
                server.until(silent, 1).await;
            }

            if drained {
                soon(pool.drain_all(Duration::from_secs(1))).await;
            } else {
                drop((session, pool));
            }

            let ended = soon(running).await.unwrap();
            if silent == "initialize" || silent == "tools/call" {
                assert!(ended.is_err(), "{silent}: {ended:?}");
            }
            for hung in server.of(silent) {
                soon(server.until_left(hung.connection)).await;
            }
            assert!(server.count("tools/call") <= 1, "{silent}");
        }
    }
}

/// A response of these bytes, and the end of the connection.
fn raw(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::new([Step::Write(bytes.into()), Step::Close])
}

/// A stream of events of these bytes, and its end.
fn stream(bytes: &[u8]) -> Reply {
    let head = b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    raw([&head[..], bytes].concat())
}

/// What is no answer to `seen`, in words.
fn nonsense(seen: &Seen) -> Vec<(&'static str, Reply)> {
    let id = &seen.body["id"];
    let good = answer(seen, "done").to_string();
    let half = &good[..good.len() - 3];
    let null = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "x"}});
    let text_id = json!({"jsonrpc": "2.0", "id": id.to_string(), "result": {"content": []}});
    let big = "x".repeat(64 * 1024);
    let many: String = (0..2000).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let lies = format!("content-length: {}\r\n\r\n{good}", good.len() + 9);
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    vec![
        ("nothing", raw("")),
        ("no HTTP", raw("hello\n\n")),
        ("half a head", raw("HTTP/1.1 200 O")),
        ("a status of two digits", raw("HTTP/1.1 20 OK\r\n\r\n")),
        (
            "status 999",
            raw("HTTP/1.1 999 Hm\r\ncontent-length: 0\r\n\r\n"),
        ),
        (
            "switching",
            raw("HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxyz"),
        ),
        ("204", raw(format!("HTTP/1.1 204 No\r\n\r\n{good}"))),
        ("205", raw("HTTP/1.1 205 No\r\ncontent-length: 0\r\n\r\n")),
        (
            "206",
            raw(format!(
                "HTTP/1.1 206 Part\r\ncontent-type: application/json\r\n\r\n{half}"
            )),
        ),
        ("304", raw("HTTP/1.1 304 No\r\n\r\n")),
        (
            "hints without end",
            raw("HTTP/1.1 103 Hint\r\nlink: </x>\r\n\r\n".repeat(5000)),
        ),
        ("many headers", raw(format!("{json}{many}\r\n"))),
        (
            "a long header",
            raw(format!("{json}x: {}\r\n\r\n", big.repeat(20))),
        ),
        (
            "odd bytes in a header",
            raw([
                &b"HTTP/1.1 200 OK\r\ncontent-type: \xff\xfe\r\n\r\n"[..],
                b"{}",
            ]
            .concat()),
        ),
        (
            "two lengths",
            raw(format!(
                "{json}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"
            )),
        ),
        ("too short", raw(format!("{json}{lies}"))),
        (
            "bad chunks",
            raw(format!(
                "{json}transfer-encoding: chunked\r\n\r\nzz\r\n{good}\r\n"
            )),
        ),
        (
            "a chunk without end",
            raw(format!(
                "{json}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{half}"
            )),
        ),
        ("half an answer", raw(format!("{json}\r\n{half}"))),
        (
            "nested deeply",
            raw(format!("{json}\r\n{}", "[".repeat(100_000))),
        ),
        ("a batch of nothing", raw(format!("{json}\r\n[]"))),
        ("the id as text", raw(format!("{json}\r\n{text_id}"))),
        ("no id", raw(format!("{json}\r\n{null}"))),
        (
            "compressed",
            raw(format!("{json}content-encoding: gzip\r\n\r\n\u{1f}\u{8b}")),
        ),
        ("an empty stream", stream(b"")),
        ("a stream of comments", stream(&b": x\n\n".repeat(50_000))),
        (
            "bad UTF-8 in a stream",
            stream(b"data: \xff\xfe\n\nid: \xff\ndata: {\xc3\x28}\n\n"),
        ),
        ("half a stream", stream(format!("data: {good}").as_bytes())),
        (
            "retry for ever",
            stream(b"retry: 99999999999999999999\nretry: 18446744073709551615\n\n"),
        ),
        (
            "no event",
            stream(format!("event: x\ndata: {good}\n\n").as_bytes()),
        ),
    ]
}

#[tokio::test]
async fn whatever_is_no_answer_ends_the_call_and_is_asked_for_once() {
    let seen_once = Server::good().await;
    let _ = call(&acquired(&pool(), &config(&seen_once)).await, "w").await;
    let count = nonsense(&seen_once.of("tools/call")[0]).len();

    for nth in 0..count {
        let server = Server::start(move |seen| {
            (seen.tool()? == "w").then(|| nonsense(seen).swap_remove(nth).1)
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        let calls = server.of("tools/call");
        let (what, _) = nonsense(&calls[0]).swap_remove(nth);
        assert!(
            matches!(failure.class(), Class::Unknown | Class::Answered),
            "{what}: {failure:?}"
        );
        assert_eq!(calls.len(), 1, "{what}");
        assert_eq!(text(&call(&lease, "r").await.unwrap()), "done", "{what}");
        assert_eq!(
            pool.snapshot().servers["s"].entry_summary[0].in_flight,
            0,
            "{what}"
        );
    }
}
