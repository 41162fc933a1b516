//! Streams of events that break, and the stream of news.

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use steadfast_classify::Class;
use steadfast_pool::ServerConfig;
use tokio::time::sleep;

use crate::support::{Reply, Seen, Server, Step, acquired, answer, call, config, pool, soon, text};

fn log() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "info", "data": "x"}})
}

/// The stream of a call that breaks after an event with an id.
fn broken(seen: &Seen) -> Option<Reply> {
    let stream = Reply::events().chunk("retry: 50\n\n");
    (seen.tool()? == "w").then(|| stream.event_with_id("e1", &log()).then(Step::Close))
}

fn resumes(server: &Server) -> Vec<String> {
    let gets = server.of("GET");
    gets.iter()
        .filter_map(|get| get.header("last-event-id").map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn broken_stream_with_an_event_id_is_resumed_behind_it() {
    let server = Server::start(|seen| {
        if seen.header("last-event-id") == Some("e1") {
            // Breaks again, with something new.
            return Some(
                Reply::events()
                    .event_with_id("e2", &log())
                    .then(Step::Close),
            );
        }
        if seen.header("last-event-id") == Some("e2") {
            let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {
                "content": [{"type": "text", "text": "late"}]}});
            return Some(Reply::events().event(&answer).end());
        }
        broken(seen)
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let result = call(&lease, "w").await.unwrap();

    assert_eq!(text(&result), "late");
    assert_eq!(resumes(&server), ["e1", "e2"]);
    let calls = server.of("tools/call");
    assert_eq!((calls.len(), &calls[0].body["id"]), (1, &json!(2)));
}

#[tokio::test]
async fn stream_is_resumed_five_times_and_no_more() {
    for refuse in [500, 503, 429] {
        let server = Server::start(move |seen| match seen.header("last-event-id") {
            Some(_) => Some(Reply::status(refuse, &[], "")),
            None => broken(seen),
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        assert_eq!(failure.class(), Class::Unknown, "{failure}");
        assert_eq!(resumes(&server).len(), 5, "HTTP status {refuse}");
    }
}

#[tokio::test]
async fn stream_that_may_not_be_resumed_ends_its_call_at_once() {
    for refuse in [404, 405, 400, 403] {
        let server = Server::start(move |seen| match seen.header("last-event-id") {
            Some(_) => Some(Reply::status(refuse, &[], "")),
            None => broken(seen),
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        assert_eq!(failure.class(), Class::Unknown, "{failure}");
        assert!(
            failure.to_string().contains(&refuse.to_string()),
            "{failure}"
        );
        assert_eq!(resumes(&server).len(), 1, "HTTP status {refuse}");
    }
}

#[tokio::test]
async fn stream_without_an_event_id_is_not_resumed() {
    let server = Server::start(|seen| {
        (seen.tool()? == "w").then(|| Reply::events().event(&log()).then(Step::Close))
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let failure = call(&lease, "w").await.unwrap_err();

    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert!(resumes(&server).is_empty());
}

#[tokio::test]
async fn without_a_handshake_no_stream_is_resumed() {
    let server = Server::speaking("2026-07-28", broken).await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .protocol_version(ProtocolVersion::V_2026_07_28)
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;

    let failure = call(&lease, "w").await.unwrap_err();

    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    assert_eq!(server.count("GET"), 0);
}

#[tokio::test]
async fn p03_a_server_without_a_stream_of_news_is_asked_once_http() {
    for refuse in [405, 404, 400, 501] {
        let server =
            Server::start(move |seen| (seen.verb == "GET").then(|| Reply::status(refuse, &[], "")))
                .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;
        server.until("GET", 1).await;
        call(&lease, "w").await.unwrap();
        sleep(Duration::from_millis(1500)).await;

        assert_eq!(server.count("GET"), 1, "HTTP status {refuse}");
        assert_eq!(server.count("initialize"), 1, "HTTP status {refuse}");
        call(&lease, "w").await.unwrap();
    }
}

#[tokio::test]
async fn p03_a_stream_of_news_that_hangs_blocks_nothing_http() {
    let server = Server::start(|seen| (seen.verb == "GET").then(|| Reply::new([Step::Hang]))).await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    let get = server.until("GET", 1).await;

    call(&lease, "w").await.unwrap();
    soon(pool.drain_all(Duration::from_secs(3))).await;

    server.until_left(get[0].connection).await;
    assert_eq!(server.count("DELETE"), 1);
}

#[tokio::test]
async fn news_of_changed_tools_are_heard_and_what_was_missed_is_looked_up() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let server = Server::start(move |seen| match (seen.verb.as_str(), seen.nth) {
        ("GET", 0) => Some(Reply::events().event(&changed).then(Step::Close)),
        ("GET", _) => Some(Reply::events().then(Step::Hang)),
        _ => None,
    })
    .await;
    let pool = pool();
    let _lease = acquired(&pool, &config(&server)).await;

    // Once at the start, once for the news, once for what may have been missed.
    let gets = server.until("GET", 2).await;
    let lists = server.until("tools/list", 3).await;

    assert_eq!(gets[0].header("accept"), Some("text/event-stream"));
    assert_eq!(gets[0].header("mcp-session-id"), Some("session-1"));
    assert!(lists[2].at >= gets[1].at, "it was looked up too early");
}

#[tokio::test]
async fn answer_on_another_stream_is_an_answer() {
    // It comes on the stream of news, while the call's own says nothing.
    let server = Server::start(move |seen| match seen.verb.as_str() {
        "GET" => {
            let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {
                "content": [{"type": "text", "text": "elsewhere"}]}});
            let stream = Reply::events().then(Step::Wait(Duration::from_millis(500)));
            Some(stream.event(&answer).then(Step::Hang))
        }
        _ => (seen.tool()? == "w").then(|| Reply::events().then(Step::Hang)),
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "elsewhere");

    // Nobody reads the call's own stream any more.
    server
        .until_left(server.of("tools/call")[0].connection)
        .await;
    assert_eq!(server.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn m06_large_answers_arrive_whole_however_they_are_cut_http() {
    for (size, piece) in [
        (4096, 1),
        (65_537, 4096),
        (1 << 20, 65_536),
        (1 << 20, 7777),
    ] {
        let server = Server::start(move |seen| {
            seen.tool()?;
            let event = format!("data: {}\r\n\r\n", answer(seen, &"ä".repeat(size / 2)));
            let mut reply = Reply::events();
            for part in event.as_bytes().chunks(piece) {
                let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
                chunk.extend_from_slice(part);
                chunk.extend_from_slice(b"\r\n");
                reply = reply.then(Step::Write(chunk));
            }
            Some(reply.end())
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let result = call(&lease, "w").await.unwrap();

        assert_eq!(
            text(&result).len(),
            size / 2 * 2,
            "{size} in pieces of {piece}"
        );
    }
}

#[tokio::test]
async fn without_a_handshake_news_are_subscribed_to() {
    let server = Server::speaking("2026-07-28", |seen| {
        if seen.kind() != "subscriptions/listen" {
            return None;
        }
        let meta = json!({"io.modelcontextprotocol/subscriptionId": seen.body["id"]});
        let accepted = json!({"jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": meta, "notifications": {"toolsListChanged": true}}});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"_meta": meta}});
        let stream = Reply::events().event(&accepted);
        Some(match seen.nth {
            0 => stream.event(&changed).end(),
            _ => stream.then(Step::Hang),
        })
    })
    .await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .protocol_version(ProtocolVersion::V_2026_07_28)
        .build()
        .unwrap();
    let _lease = acquired(&pool, &config).await;

    // For the news, and for what may have been missed when the stream had ended.
    let asked = server.until("subscriptions/listen", 2).await;
    let lists = server.until("tools/list", 3).await;

    let wanted = &asked[0].body["params"]["notifications"];
    assert_eq!(wanted, &json!({"toolsListChanged": true}));
    assert!(lists[2].at >= asked[1].at, "it was looked up too early");
    soon(pool.drain_all(Duration::from_secs(3))).await;
    server.until_left(asked[1].connection).await;
}

#[tokio::test]
async fn without_a_handshake_a_server_that_tells_no_news_is_asked_once() {
    let server = Server::speaking("2026-07-28", |_| None).await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .protocol_version(ProtocolVersion::V_2026_07_28)
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;
    server.until("subscriptions/listen", 1).await;
    sleep(Duration::from_millis(1500)).await;

    call(&lease, "w").await.unwrap();
    assert_eq!(server.count("subscriptions/listen"), 1);
}

#[tokio::test]
async fn question_of_a_server_within_a_call_is_answered() {
    let server = Server::start(|seen| {
        let ping = json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"});
        let wait = Step::Wait(Duration::from_millis(300));
        seen.tool()?;
        Some(
            Reply::events()
                .event(&ping)
                .then(wait)
                .event(&answer(seen, "done"))
                .end(),
        )
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    call(&lease, "w").await.unwrap();

    // It has no method, so it is known by its verb.
    let answers = server.until("POST", 1).await;
    assert_eq!(
        answers[0].body,
        json!({"jsonrpc": "2.0", "id": "p1", "result": {}})
    );
    assert_eq!(answers[0].header("mcp-session-id"), Some("session-1"));
}
