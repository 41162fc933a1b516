//! Versions of the protocol.

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::json;
use steadfast_classify::Class;
use steadfast_pool::{ServerConfig, VersionMismatch};

use crate::support::{Reply, Seen, Server, acquired, call, config, pool, soon, text};

#[tokio::test]
async fn p01_versions_are_agreed_on_http() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = Server::speaking(version, |_| None).await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;
        call(&lease, "w").await.unwrap();

        let asked = &server.of("initialize")[0].body["params"]["protocolVersion"];
        assert_eq!(asked, "2025-11-25");
        let called = &server.of("tools/call")[0];
        assert_eq!(called.header("mcp-protocol-version"), Some(version));
    }
}

#[tokio::test]
async fn server_that_knows_no_handshake_is_found_out() {
    type Refuse = fn(&Seen) -> Reply;
    let refusals: [Refuse; 4] = [
        |_| Reply::status(400, &[], ""),
        |_| Reply::status(404, &[], ""),
        |seen| rpc_error(seen, 200, -32601),
        |seen| rpc_error(seen, 400, -32022),
    ];
    for refuse in refusals {
        let server = Server::speaking("2026-07-28", move |seen| {
            (seen.kind() == "initialize").then(|| refuse(seen))
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
        assert_eq!(server.count("initialize"), 1);
        assert_eq!(server.count("server/discover"), 1);
    }
}

fn rpc_error(seen: &Seen, status: u16, code: i32) -> Reply {
    let error = json!({"jsonrpc": "2.0", "id": seen.body["id"],
        "error": {"code": code, "message": "no", "data": {"supported": ["2026-07-28"]}}});
    let json = ("content-type", "application/json");
    Reply::status(status, &[json], &error.to_string())
}

#[tokio::test]
async fn requests_without_a_handshake_say_what_they_are() {
    let server = Server::speaking("2026-07-28", |_| None).await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .protocol_version(ProtocolVersion::V_2026_07_28)
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;
    call(&lease, "w").await.unwrap();
    soon(pool.drain_all(Duration::from_secs(3))).await;

    let kinds = server.kinds();
    let mut known = kinds.clone();
    known.retain(|kind| kind != "subscriptions/listen");
    assert_eq!(known, ["server/discover", "tools/list", "tools/call"]);
    for seen in server.seen() {
        let kind = seen.kind();
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(kind.as_str()));
        let name = (kind == "tools/call").then_some("w");
        assert_eq!(seen.header("mcp-name"), name);
        assert_eq!(seen.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn p01_a_version_that_nobody_knows_is_refused_once_and_left_http() {
    let server = Server::speaking("2099-01-01", |_| None).await;
    let pool = pool();
    let session = pool.session("a");

    let failure = soon(session.acquire(&config(&server))).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(failure.is_permanent(), "{failure}");
    let mismatch = failure
        .find_source::<VersionMismatch>()
        .expect("the version");
    assert_eq!(mismatch.theirs.as_str(), "2099-01-01");
    // The session that it began is ended.
    server.until("DELETE", 1).await;
    assert_eq!(server.count("initialize"), 1);
}
