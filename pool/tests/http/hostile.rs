//! Servers, and what stands before them, that behave as if they meant harm.

use serde_json::json;
use steadfast_classify::Class;

use crate::support::{Reply, Server, acquired, call, config, pool, text};

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
