//! A server's list of tools: all of it or an error, and no flaw of it in silence.

use serde_json::{Value, json};
use steadfast::{
    Failure, Lease, Session,
    pool::{Fault, PoolEvent},
};
use tokio::time::Instant;

use crate::support::{Agent, SOON, Stage, quick, secs};

async fn listed(stage: &Stage, session: &Session, list: Value) -> Result<Lease, Failure> {
    let config = stage.server_with(
        &json!({ "list": list }),
        json!({"discoveryTimeoutMs": 5000}),
    );
    session.acquire(&config).await
}

fn names(lease: &Lease) -> Vec<String> {
    let tools = lease.tools().tools;
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// The cursors that were sent with requests for the list.
fn cursors(stage: &Stage) -> Vec<Option<String>> {
    let events = stage.events();
    let asked = events
        .iter()
        .filter(|event| event.method.as_deref() == Some("tools/list"));
    asked.map(|event| event.cursor.clone()).collect()
}

#[tokio::test]
async fn l03_all_pages_are_read_and_an_empty_cursor_is_a_cursor_stdio() {
    for (list, pages) in [
        (json!({"page_size": 2}), 3),
        (json!({"cursors": "empty"}), 2),
    ] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");

        let lease = listed(&stage, &session, list).await.unwrap();

        assert_eq!(names(&lease), ["w", "r", "i", "env", "pid"]);
        let cursors = cursors(&stage);
        assert_eq!(cursors.len(), pages);
        if pages == 2 {
            assert_eq!(cursors, [None, Some(String::new())]);
        }
        drop(lease);
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn l03_a_list_without_an_end_is_an_error_and_no_half_list_stdio() {
    for (list, told, at_most) in [
        (json!({"cursors": "same"}), "again", 3),
        (json!({"cursors": "endless"}), "1000 pages", 1000),
    ] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");

        let failure = listed(&stage, &session, list).await.unwrap_err();

        assert!(failure.to_string().contains(told), "{failure}");
        assert!(cursors(&stage).len() <= at_most);
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn l03_one_limit_holds_for_all_pages_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let begun = Instant::now();

    let list = json!({"page_size": 2, "hang_page": 2});
    let failure = listed(&stage, &session, list).await.unwrap_err();

    assert!(
        failure.to_string().contains("not ready in time"),
        "{failure}"
    );
    assert!(begun.elapsed() < secs(5) + SOON, "{:?}", begun.elapsed());
    stage.end(pool).await;
}

#[tokio::test]
async fn a_tool_without_a_schema_and_one_that_is_there_twice_cost_no_other_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let mut events = pool.events();

    let list = json!({"names": ["bad", "w", "last"], "schemas": {"bad": null}});
    let lease = listed(&stage, &session, list).await.unwrap();

    assert_eq!(names(&lease), ["w", "r", "i", "env", "pid", "last"]);
    let flaws = lease.tools().flaws;
    let found: Vec<_> = flaws
        .iter()
        .map(|flaw| (&*flaw.name, flaw.fault == Fault::Repeated))
        .collect();
    assert_eq!(found, [("bad", false), ("w", true)]);
    let mut told = false;
    while let Ok(event) = events.try_recv() {
        told |= matches!(event, PoolEvent::ListFlawed { list: "tools", .. });
    }
    assert!(told);
    let answer = Agent::new(lease, quick()).call("last", json!({})).await;
    assert!(answer.unwrap().is_live());
    stage.end(pool).await;
}
