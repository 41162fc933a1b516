//! What a trace says of a call to a real server.

use serde_json::json;

use crate::{
    ALONE,
    listen::Ears,
    support::{Agent, Stage, quick},
};

#[tokio::test]
async fn a_span_has_the_number_of_its_request_and_the_version_that_is_spoken_stdio() {
    let _alone = ALONE.lock().await;
    let ears = Ears::open();
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    ears.clear();

    let agent = Agent::new(lease, quick());
    agent.call("w", json!({"echo": "here"})).await.unwrap();

    let heard = ears.filtered.take();
    let begun = "span steadfast_pool::lease::span otel.name=tools/call w";
    let span = heard.lines().filter(|line| line.starts_with(begun));
    let span: Vec<_> = span.collect();
    assert!(
        matches!(span[..], [span] if span.contains("steadfast.attempt=1")),
        "{heard}"
    );
    for noted in ["jsonrpc.request.id=", "mcp.protocol.version=2025-11-25"] {
        let noted = format!("span {noted}");
        let lines = heard.lines().filter(|line| line.starts_with(&noted));
        assert_eq!(lines.count(), 1, "{noted}: {heard}");
    }
    drop((agent, session));
    stage.end(pool).await;
}
