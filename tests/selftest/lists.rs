//! The tool list and its faults; prompts and resources.

use serde_json::{Value, json};
use steadfast_tests::probe::Knobs;
use tokio::time::Instant;

use crate::driver::{Client, ms};

async fn listing(knobs: Value) -> Client {
    let knobs = Knobs::from_json(&json!({ "list": knobs }).to_string()).unwrap();
    Client::ready(knobs).await.0
}

fn names(page: &Value) -> Vec<&str> {
    let tools = page["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// Walks at most `limit` pages; the names of each, and the cursors asked with.
async fn walk(client: &mut Client, limit: usize) -> (Vec<Vec<String>>, Vec<Value>) {
    let (mut pages, mut cursors) = (Vec::new(), Vec::new());
    let mut params = json!({});
    while pages.len() < limit {
        let page = client.ask("tools/list", params).await;
        pages.push(names(&page).into_iter().map(str::to_owned).collect());
        let Some(cursor) = page["result"].get("nextCursor") else {
            break;
        };
        cursors.push(cursor.clone());
        params = json!({ "cursor": cursor });
    }
    (pages, cursors)
}

#[tokio::test(start_paused = true)]
async fn a_healthy_list_is_one_page_of_annotated_tools() {
    let mut client = listing(json!({})).await;

    let page = client.ask("tools/list", json!({})).await;

    assert_eq!(names(&page), ["w", "r", "i", "env", "pid"]);
    let tools = &page["result"]["tools"];
    assert!(tools[0].get("annotations").is_none());
    assert_eq!(tools[1]["annotations"], json!({ "readOnlyHint": true }));
    assert_eq!(tools[2]["annotations"], json!({ "idempotentHint": true }));
    assert_eq!(tools[0]["inputSchema"], json!({ "type": "object" }));
}

#[tokio::test(start_paused = true)]
async fn tools_are_added_removed_and_described_as_told() {
    let mut client = listing(json!({
        "extra": 2, "names": ["a__b", "a::b"], "without": ["env", "pid", "i"],
        "annotations": { "r": null, "w": { "destructiveHint": true } },
        "schemas": { "w": { "type": "object", "required": ["x"] } },
    }))
    .await;

    let page = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&page), ["w", "r", "a__b", "a::b", "t0", "t1"]);
    let tools = &page["result"]["tools"];
    assert_eq!(tools[0]["annotations"], json!({ "destructiveHint": true }));
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["x"]));
    assert!(tools[1].get("annotations").is_none());

    let answer = client.call("a__b", json!({})).await;
    assert_eq!(answer["result"]["structuredContent"]["tool"], "a__b");
    let answer = client.call("i", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn pages_together_are_the_whole_list() {
    let mut client = listing(json!({ "extra": 2_000, "page_size": 700 })).await;

    let (pages, _) = walk(&mut client, 10).await;

    let sizes: Vec<_> = pages.iter().map(Vec::len).collect();
    assert_eq!(sizes, [700, 700, 605]);
    let mut all = pages.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2_005);
}

#[tokio::test(start_paused = true)]
async fn cursors_go_wrong_as_told() {
    let mut client = listing(json!({ "cursors": "same" })).await;
    let (_, cursors) = walk(&mut client, 5).await;
    assert_eq!(cursors, vec![json!("again"); 5]);

    let mut client = listing(json!({ "cursors": "endless" })).await;
    let (pages, cursors) = walk(&mut client, 50).await;
    assert_eq!(cursors.len(), 50);
    let mut all = pages.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 5 + 49, "a new tool on each further page");

    let mut client = listing(json!({ "cursors": "empty" })).await;
    let (pages, cursors) = walk(&mut client, 5).await;
    assert_eq!(cursors, [""]);
    assert_eq!(pages, [vec!["w", "r", "i"], vec!["env", "pid"]]);

    let mut client = listing(json!({})).await;
    let answer = client
        .ask("tools/list", json!({ "cursor": "made up" }))
        .await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_page_hangs_comes_late_or_is_refused_as_told() {
    let mut client = listing(json!({ "page_size": 3, "hang_page": 2 })).await;
    let first = client.ask("tools/list", json!({})).await;
    let cursor = first["result"]["nextCursor"].clone();
    client
        .request("tools/list", json!({ "cursor": cursor }))
        .await;
    assert!(client.hears_nothing_for(ms(60_000)).await);

    let mut client = listing(json!({ "delay_ms": 700 })).await;
    let before = Instant::now();
    client.ask("tools/list", json!({})).await;
    assert_eq!(before.elapsed(), ms(700));

    let mut client = listing(json!({ "rpc_error": -32603, "rpc_message": "no" })).await;
    let answer = client.ask("tools/list", json!({})).await;
    assert_eq!(answer["error"], json!({ "code": -32603, "message": "no" }));
}

#[tokio::test(start_paused = true)]
async fn a_call_changes_the_list_and_tells_it() {
    let changed = json!({ "without": ["i"], "names": ["new"] });
    for (knobs, after) in [
        (json!({}), vec!["w", "r", "i", "env", "pid", "added"]),
        (
            json!({ "changed": changed }),
            vec!["w", "r", "env", "pid", "new"],
        ),
    ] {
        let mut client = listing(knobs).await;
        let page = client.ask("tools/list", json!({})).await;
        assert_eq!(names(&page), ["w", "r", "i", "env", "pid"]);

        let id = client.begin("w", json!({ "change_list": 50 })).await;

        for _ in 0..50 {
            let notice = client.next().await;
            assert_eq!(notice["method"], "notifications/tools/list_changed");
        }
        assert_eq!(client.next().await["id"], id);
        let page = client.ask("tools/list", json!({})).await;
        assert_eq!(names(&page), after);
        let last = after.last().unwrap();
        assert!(client.call(last, json!({})).await.get("result").is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_are_served() {
    let greet = json!({ "name": "greet", "arguments": { "whom": "you" } });
    let text = "/result/messages/0/content/text";
    answers(&[
        (
            "prompts/list",
            json!({}),
            "/result/prompts/0/name",
            json!("greet"),
        ),
        ("prompts/get", greet, text, json!("Hello, you!")),
        (
            "prompts/get",
            json!({ "name": "part" }),
            text,
            json!("Goodbye!"),
        ),
        (
            "prompts/get",
            json!({ "name": "x" }),
            "/error/code",
            json!(-32602),
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn resources_are_served() {
    let (two, none) = (json!({ "uri": "probe://two" }), json!({ "uri": "x" }));
    let templates = "/result/resourceTemplates";
    answers(&[
        (
            "resources/list",
            json!({}),
            "/result/resources/1/uri",
            two["uri"].clone(),
        ),
        ("resources/read", two, "/result/contents/0/text", json!("2")),
        ("resources/read", none, "/error/code", json!(-32002)),
        ("resources/templates/list", json!({}), templates, json!([])),
    ])
    .await;
}

/// Each request's answer holds the value at the pointer.
async fn answers(cases: &[(&str, Value, &str, Value)]) {
    let mut client = listing(json!({})).await;
    for (method, params, pointer, want) in cases {
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer.pointer(pointer), Some(want), "{method}: {answer}");
    }
}
