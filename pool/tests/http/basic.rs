//! A connection that works.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::support::{Reply, Server, Step, acquired, call, config, pool, soon, text};

#[tokio::test]
async fn calls_are_answered_and_the_session_is_ended() {
    let server = Server::good().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let result = call(&lease, "w").await.unwrap();

    assert_eq!(text(&result), "done");
    soon(pool.drain_all(Duration::from_secs(3))).await;
    let kinds = server.kinds();
    let posts: Vec<_> = kinds.iter().filter(|kind| *kind != "GET").collect();
    assert_eq!(
        posts,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
            "DELETE"
        ]
    );
}

#[tokio::test]
async fn headers_are_what_the_protocol_asks_for() {
    let server = Server::good().await;
    let pool = pool();
    let config = steadfast_pool::ServerConfig::http("s", server.url())
        .header("X-Team", "blue")
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;
    call(&lease, "w").await.unwrap();

    for seen in server.seen() {
        assert_eq!(seen.header("x-team"), Some("blue"), "{seen:?}");
        let first = seen.kind() == "initialize";
        let session = seen.header("mcp-session-id");
        assert_eq!(session, (!first).then_some("session-1"), "{seen:?}");
        let version = seen.header("mcp-protocol-version");
        assert_eq!(version, (!first).then_some("2025-11-25"), "{seen:?}");
        if seen.verb == "POST" {
            assert_eq!(seen.header("content-type"), Some("application/json"));
            let accept = seen.header("accept");
            assert_eq!(accept, Some("application/json, text/event-stream"));
            assert!(seen.header("transfer-encoding").is_none(), "{seen:?}");
        }
    }
}

#[tokio::test]
async fn answer_may_be_an_event_of_a_stream() {
    let server = Server::start(|seen| {
        let answer = crate::support::answer(seen, "streamed");
        seen.tool()?;
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "info", "data": "x"}});
        Some(
            Reply::events()
                .chunk(": a comment\n\n")
                .event(&log)
                .event(&answer)
                .then(Step::Wait(Duration::from_millis(50)))
                .end(),
        )
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    for _ in 0..3 {
        assert_eq!(text(&call(&lease, "w").await.unwrap()), "streamed");
        // The answer is there before the end of its stream.
        sleep(Duration::from_millis(150)).await;
    }

    // Read to its end, a stream leaves its connection for the next request.
    let calls = server.of("tools/call");
    let connections: Vec<_> = calls.iter().map(|seen| seen.connection).collect();
    assert!(
        connections.windows(2).all(|two| two[0] == two[1]),
        "{connections:?}"
    );
}
