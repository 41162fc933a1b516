//! Answers that are not the right ones.

use serde_json::json;

use super::client::{End, Visit, exchange};

#[tokio::test]
async fn a_status_comes_so_often_and_then_the_answer() {
    let fault = json!({ "on": ["tools/call"], "skip": 1, "times": 2, "status": 503,
        "headers": { "Retry-After": "1" }, "content_type": "text/plain", "body": "busy {id}" });
    let mut visit = Visit::ready(json!({ "faults": [fault] })).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(visit.call("w", json!({})).await.status);
    }
    assert_eq!(statuses, [200, 503, 503, 200]);
    assert_eq!(visit.executed(), 2);

    // Turning the knobs makes the faults count anew.
    visit.probe.change(|knobs| knobs.faults[0].skip = 0);
    let seen = visit.call("w", json!({})).await;
    assert_eq!(seen.headers["retry-after"], "1");
    assert_eq!(seen.headers["content-type"], "text/plain");
    assert_eq!(seen.body, "busy 6");
    assert_eq!(
        visit.ask("ping", json!({})).await.status,
        200,
        "only of calls"
    );
}

#[tokio::test]
async fn the_wrong_answer_may_come_after_executing() {
    let mut visit = Visit::ready(json!({})).await;
    for (execute, count) in [(false, 0), (true, 1)] {
        let fault = json!({ "status": 502, "execute": execute });
        let seen = visit.call("w", json!({ "http": fault })).await;
        assert_eq!((seen.status, visit.executed()), (502, count));
    }
}

#[tokio::test]
async fn a_call_carries_its_own_fault_so_often() {
    let mut visit = Visit::ready(json!({})).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let call = json!({ "tag": "t", "http": { "status": 429, "times": 1, "skip": 1 } });
        statuses.push(visit.call("w", call).await.status);
    }
    assert_eq!(statuses, [200, 429, 200]);
    let call = json!({ "tag": "other", "http": { "status": 429, "times": 1 } });
    assert_eq!(
        visit.call("w", call).await.status,
        429,
        "each tag for itself"
    );
}

#[tokio::test]
async fn everything_but_the_named_fails() {
    let fault = json!({ "except": ["initialize", "notifications/initialized"], "status": 404 });
    let mut visit = Visit::ready(json!({ "faults": [fault] })).await;
    assert_eq!(visit.ask("ping", json!({})).await.status, 404);
    assert_eq!(visit.get(&[]).await.status, 404);
    assert_eq!(visit.get_with("DELETE").await.status, 404);
    visit.shake_hands().await;
}

#[tokio::test]
async fn a_token_is_asked_for() {
    let mut visit = Visit::ready(json!({ "challenge": "Bearer realm=\"probe\"" })).await;
    visit
        .probe
        .change(|knobs| knobs.token = Some("X".to_owned()));
    let message = visit.message("ping", json!({})).to_string();

    let seen = visit.ask("ping", json!({})).await;
    assert_eq!(seen.status, 401);
    assert_eq!(seen.headers["www-authenticate"], "Bearer realm=\"probe\"");
    for (token, status) in [("Bearer Y", 401), ("Bearer X", 200)] {
        let request = visit.bytes("POST", &[("Authorization", token)], &message);
        let seen = exchange(&mut visit.connect().await, &request).await;
        assert_eq!(seen.status, status, "{token}");
    }
    let requests = visit.probe.requests();
    assert_eq!(
        requests.last().unwrap().header("authorization"),
        Some("Bearer X")
    );
}

#[tokio::test]
async fn redirects_point_where_they_are_told() {
    let mut visit = Visit::ready(json!({})).await;
    let fault = json!({ "status": 307, "headers": { "Location": "/moved" } });
    let seen = visit.call("w", json!({ "http": fault })).await;
    assert_eq!(
        (seen.status, seen.headers["location"].as_str()),
        (307, "/moved")
    );
    assert_eq!(visit.executed(), 0);
}

#[tokio::test]
async fn a_connection_serves_one_request_or_many() {
    let mut visit = Visit::ready(json!({})).await;
    for (no_keep_alive, end) in [(false, End::Whole), (true, End::Closed)] {
        visit
            .probe
            .change(|knobs| knobs.no_keep_alive = no_keep_alive);
        let message = visit.message("ping", json!({})).to_string();
        let request = visit.bytes("POST", &[], &message);
        let mut stream = visit.connect().await;
        let before = visit.probe.accepted();

        assert_eq!(exchange(&mut stream, &request).await.status, 200);
        let again = exchange(&mut stream, &request).await;

        assert_eq!(again.end, end, "{again:?}");
        assert!(visit.probe.accepted() <= before + 1);
    }
}

#[tokio::test]
async fn requests_are_remembered_as_they_came() {
    let mut visit = Visit::ready(json!({})).await;
    visit.call("w", json!({ "tag": "t" })).await;

    let requests = visit.probe.requests();
    let of = |rpc: &str| requests.iter().find(|seen| seen.is(rpc)).unwrap().clone();
    assert_eq!(of("initialize").session(), None);
    assert_eq!(
        of("notifications/initialized").session(),
        visit.session.as_deref()
    );
    let call = of("tools/call");
    assert_eq!((call.method.as_str(), call.path.as_str()), ("POST", "/mcp"));
    assert_eq!((call.tag.as_deref(), call.id), (Some("t"), Some(json!(2))));
    assert!(call.body.contains("\"tools/call\""));
    assert_eq!(visit.probe.received("tools/call"), 1);
}
