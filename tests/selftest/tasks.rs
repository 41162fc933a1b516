//! Calls that run as tasks, and calls that ask before they run.

use serde_json::{Value, json};

use crate::driver::{Client, Files, ended, initialize, ms};
use crate::logs::ledger;
use steadfast_tests::probe::Knobs;

/// A client that says that it follows tasks.
async fn follower(knobs: Knobs) -> (Client, crate::driver::Server) {
    let (mut client, server) = Client::start(knobs);
    let mut hello = initialize();
    hello["capabilities"] = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let welcome = client.ask("initialize", hello).await;
    let extensions = &welcome["result"]["capabilities"]["extensions"];
    assert!(extensions["io.modelcontextprotocol/tasks"].is_object());
    client.notify("notifications/initialized", json!({})).await;
    (client, server)
}

async fn begin(client: &mut Client, task: Value) -> Value {
    let arguments = json!({"tag": "task", "echo": "built", "task": task});
    let answer = client.call("w", arguments).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    json!({"taskId": answer["result"]["taskId"]})
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_task_only_where_the_client_follows_them() {
    let task = json!({"task": {"interval_ms": 500, "ttl_ms": 9_000}});

    let (mut client, _server) = Client::ready(Knobs::default()).await;
    let plain = client.call("w", task.clone()).await;
    assert!(plain["result"]["content"].is_array(), "{plain}");

    let (mut client, _server) = follower(Knobs::default()).await;
    let begun = client.call("w", task).await;
    assert_eq!(begun["result"]["status"], "working", "{begun}");
    assert_eq!(begun["result"]["pollIntervalMs"], 500);
    assert_eq!(begun["result"]["ttlMs"], 9_000);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_server_and_is_executed_once() {
    let files = Files::new();
    let (mut client, server) = follower(files.knobs()).await;
    let task = begin(&mut client, json!({"exit_at_poll": 1})).await;
    client.request("tasks/get", task.clone()).await;
    assert_eq!(ended(server).await, 1, "it exits instead of answering");

    let (mut client, _server) = follower(files.knobs()).await;
    let answer = client.ask("tasks/get", task).await;

    let result = &answer["result"];
    assert_eq!(result["status"], "completed", "{answer}");
    assert_eq!(result["result"]["content"][0]["text"], "built");
    assert_eq!(ledger(&files).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_as_it_is_told_to() {
    let (mut client, _server) = follower(Knobs::default()).await;
    for (ends, status) in [
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
    ] {
        let task = begin(&mut client, json!({"ends": ends})).await;
        let answer = client.ask("tasks/get", task).await;
        assert_eq!(answer["result"]["status"], status, "{answer}");
    }

    let task = begin(&mut client, json!({"work_ms": 600_000})).await;
    let answer = client.ask("tasks/get", task.clone()).await;
    assert_eq!(answer["result"]["status"], "working");
    client.ask("tasks/cancel", task.clone()).await;
    let answer = client.ask("tasks/get", task).await;
    assert_eq!(answer["result"]["status"], "cancelled");

    let task = begin(&mut client, json!({"unknown": true})).await;
    let answer = client.ask("tasks/get", task).await;
    assert_eq!(answer["error"]["code"], -32602);

    let task = begin(&mut client, json!({"lost_polls": 1})).await;
    client.request("tasks/get", task.clone()).await;
    assert!(client.hears_nothing_for(ms(1_000)).await);
    let answer = client.ask("tasks/get", task).await;
    assert_eq!(answer["result"]["status"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_task_asks_until_it_is_told() {
    let (mut client, _server) = follower(Knobs::default()).await;
    let mut task = begin(
        &mut client,
        json!({"asks": {"a": {"method": "roots/list"}}}),
    )
    .await;
    let answer = client.ask("tasks/get", task.clone()).await;
    assert_eq!(answer["result"]["status"], "input_required");
    assert!(answer["result"]["inputRequests"]["a"].is_object());

    task["inputResponses"] = json!({"a": 5});
    client.ask("tasks/update", task.clone()).await;

    let answer = client.ask("tasks/get", task).await;
    let told = &answer["result"]["result"]["structuredContent"]["told"];
    assert_eq!(told["a"], 5, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_its_rounds_and_then_runs() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;
    let rounds = json!([{"a": {"method": "roots/list"}}, {"b": {"method": "roots/list"}}]);
    let mut params = json!({"name": "w", "arguments": {"tag": "asks", "rounds": rounds}});

    for key in ["a", "b"] {
        let answer = client.ask("tools/call", params.clone()).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        assert!(answer["result"]["inputRequests"][key].is_object());
        assert_eq!(ledger(&files).len(), 0);
        params["requestState"] = answer["result"]["requestState"].clone();
        params["inputResponses"] = json!({key: 1});
    }

    let answer = client.ask("tools/call", params).await;
    assert_eq!(answer["result"]["structuredContent"]["told"]["b"], 1);
    assert_eq!(ledger(&files).len(), 1);
}
