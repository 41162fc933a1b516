//! Both lifecycles, as the specification has them.

use serde_json::{Value, json};

use super::client::Visit;
use crate::driver::initialize;

#[tokio::test]
async fn a_session_begins_with_initialize_and_ends_with_delete() {
    let mut visit = Visit::start(json!({})).await;

    let answer = visit.ask("initialize", initialize()).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answer.headers["content-type"], "application/json");
    visit.session = answer.headers.get("mcp-session-id").cloned();
    assert!(visit.session.is_some());
    assert_eq!(visit.probe.sessions(), 1);

    let answer = visit.call("w", json!({ "echo": "hello" })).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");
    assert_eq!(visit.get_with("DELETE").await.status, 204);
    assert_eq!(visit.call("w", json!({})).await.status, 404);
    assert_eq!(visit.executed(), 1);
}

#[tokio::test]
async fn a_request_without_its_headers_is_refused() {
    let mut visit = Visit::ready(json!({})).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let good = String::from_utf8(visit.bytes("POST", &[], &ping)).unwrap();

    for (from, to, status) in [
        ("", "", 200),
        (
            "Content-Type: application/json",
            "Content-Type: text/plain",
            415,
        ),
        (", text/event-stream", "", 406),
        ("Mcp-Session-Id", "X-Other", 400),
        ("Host: probe", "MCP-Protocol-Version: 1999-01-01", 400),
        ("Host: probe", "MCP-Protocol-Version: 2025-06-18", 200),
    ] {
        let request = good.replacen(from, to, 1);
        assert_eq!(visit.send(&request).await.status, status, "{to}");
    }
    visit.session = Some("unknown".to_owned());
    assert_eq!(visit.ask("ping", json!({})).await.status, 404);
    assert_eq!(visit.get_with("PUT").await.status, 405);
}

#[tokio::test]
async fn the_later_lifecycle_needs_no_session() {
    let mut visit = Visit::start(json!({})).await;

    let answer = visit.modern("server/discover", json!({}), None).await;
    let result = answer.json()["result"].clone();
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(answer.headers.get("mcp-session-id"), None);

    let params = json!({ "name": "w", "arguments": { "echo": 1 } });
    let answer = visit.modern("tools/call", params.clone(), Some("w")).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "1");
    assert_eq!(answer.json()["result"]["resultType"], "complete");
    assert_eq!(visit.probe.sessions(), 0);

    let wrong = visit.modern("tools/call", params, Some("r")).await;
    assert_eq!(
        (wrong.status, wrong.json()["error"]["code"].as_i64()),
        (400, Some(-32020))
    );
    let ping = visit.modern("ping", json!({}), None).await;
    assert_eq!(
        (ping.status, ping.json()["error"]["code"].as_i64()),
        (404, Some(-32601))
    );
    assert_eq!(visit.executed(), 1);
}

#[tokio::test]
async fn a_server_may_speak_only_one_of_them() {
    let mut visit = Visit::start(json!({ "start": { "lifecycle": "initialize" } })).await;
    let answer = visit.modern("server/discover", json!({}), None).await;
    assert_eq!(answer.status, 400, "no session, no idea what this is");

    let mut visit = Visit::start(json!({ "start": { "lifecycle": "stateless" } })).await;
    let answer = visit.ask("initialize", initialize()).await.json();
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn a_client_of_the_later_lifecycle_cancels_by_going_away() {
    let mut visit = Visit::ready(json!({})).await;
    for (times, is_modern) in [(1, true), (2, false)] {
        let arguments = json!({ "delay_ms": 60_000, "tag": "slow" });
        let params = json!({ "name": "w", "arguments": arguments });
        let request = if is_modern {
            visit.modern_bytes("tools/call", params, Some("w"))
        } else {
            let message = visit.message("tools/call", params);
            visit.bytes("POST", &[], &message.to_string())
        };
        let before = visit.executed();
        let mut stream = visit.connect().await;
        tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
            .await
            .unwrap();
        visit.executed_soon(before + 1).await;
        let running = visit.probe.running();
        drop(stream);

        visit.gone_soon(times).await;
        assert_eq!(
            visit.probe.running(),
            running - usize::from(is_modern),
            "{is_modern}"
        );
    }
}

// === impl Visit ===

impl Visit {
    pub(super) async fn get_with(&self, method: &str) -> super::client::Seen {
        let request = self.bytes(method, &[], "");
        super::client::exchange(&mut self.connect().await, &request).await
    }

    async fn send(&self, request: &str) -> super::client::Seen {
        super::client::exchange(&mut self.connect().await, request.as_bytes()).await
    }

    async fn modern(
        &mut self,
        method: &str,
        params: Value,
        name: Option<&str>,
    ) -> super::client::Seen {
        let request = self.modern_bytes(method, params, name);
        super::client::exchange(&mut self.connect().await, &request).await
    }

    fn modern_bytes(&mut self, method: &str, mut params: Value, name: Option<&str>) -> Vec<u8> {
        let version = "2026-07-28";
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": version });
        let message = self.message(method, params).to_string();
        let mut headers = vec![("MCP-Protocol-Version", version), ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        self.bytes("POST", &headers, &message)
    }

    /// The probe has seen a client go.
    async fn gone_soon(&self, times: usize) {
        use steadfast_tests::probe::{Event, EventKind, Events};

        let events: Events = Events::new(self.files.path("events"));
        let gone = |lines: &[Event]| lines.iter().filter(|e| e.kind == EventKind::Gone).count();
        let seen = events.wait_for(super::client::SOON, |lines| gone(lines) >= times);
        seen.await.unwrap();
    }
}
