use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::join_all;
use rmcp::model::{GetPromptRequestParams, JsonObject, ReadResourceRequestParams};
use serde_json::json;
use steadfast_classify::{Class, Failure};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use super::{super::calls::claimed, Script, connect, millis, pool, server, tool};
use crate::{Lease, Link as _};

/// Echoes a number after some time, in an order of its own; each tenth late.
fn echo() -> Script {
    let count = AtomicU64::new(0);
    Script::new(json!({"tools": {}}), move |method, params| match method {
        "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
        "tools/call" => {
            let n = count.fetch_add(1, Ordering::Relaxed);
            let delay = if n.is_multiple_of(10) {
                400
            } else {
                n * 7919 % 97
            };
            let text = params["arguments"]["n"].to_string();
            vec![(
                millis(delay),
                json!({"content": [{"type": "text", "text": text}]}),
            )]
        }
        _ => Vec::new(),
    })
}

async fn ask(lease: &Lease, n: u64) -> Result<String, Failure> {
    let arguments = JsonObject::from_iter([("n".to_owned(), n.into())]);
    let call = lease.tool("w").with_arguments(arguments);
    let answer = lease.clone().oneshot(call).await?;
    let text = answer.content[0].as_text().map(|text| text.text.clone());
    Ok(text.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn k06_everybody_gets_the_answer_to_their_own_question() {
    let script = echo();
    let pool = pool(&script);
    let sessions: Vec<_> = (0..20).map(|n| pool.session(n.to_string())).collect();
    let config = server();
    let restart = async {
        sleep(millis(3_000)).await;
        let restarted = pool.restart("scripted", None).await;
        assert!(restarted[0].restarted);
    };

    let callers = join_all(sessions.iter().enumerate().map(async |(index, session)| {
        let lease = session.acquire(&config).await.expect("it starts");
        let (mut right, mut late) = (0, 0);
        for call in 0..200 {
            let n = index as u64 * 1_000 + call;
            match timeout(millis(200), ask(&lease, n)).await {
                Ok(Ok(answer)) => {
                    assert_eq!(answer, n.to_string());
                    right += 1;
                }
                Ok(Err(failure)) => {
                    assert!(matches!(failure.class(), Class::Unknown | Class::NotSent));
                }
                Err(_) => late += 1,
            }
        }
        (right, late)
    }));
    let (counts, ()) = futures::join!(callers, restart);

    let right: u64 = counts.iter().map(|(right, _)| right).sum();
    let late: u64 = counts.iter().map(|(_, late)| late).sum();
    assert!(right > 3_000 && late > 300, "{right} {late}");
    assert_ids_are_never_used_again(&script);
}

fn assert_ids_are_never_used_again(script: &Script) {
    let calls = script.received("tools/call");
    let ids: Vec<u64> = calls
        .iter()
        .map(|call| call["id"].as_u64().expect("a number"))
        .collect();
    // The ids of a connection grow, and there were two.
    let falls = ids.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    assert_eq!(falls, 1, "one for the restart");
    let distinct: HashSet<_> = ids.iter().collect();
    assert!(distinct.len() * 2 > ids.len());
}

#[tokio::test(start_paused = true)]
async fn l06_no_request_is_sent_before_the_server_was_told_that_it_is_ready() {
    let script = echo();
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.lease(&server()).expect("it is open");

    let answers = join_all((0..10).map(|n| ask(&lease, n))).await;

    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(script.received("initialize").len(), 1);
    let methods = script.methods();
    let ready = methods
        .iter()
        .position(|method| method == "notifications/initialized");
    let asked = methods.iter().position(|method| method == "tools/list");
    assert!(ready < asked, "{methods:?}");
}

#[tokio::test(start_paused = true)]
async fn j05_a_cancel_is_one_notice_about_one_call() {
    let script = Script::new(json!({"tools": {}}), |method, params| match method {
        "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
        "tools/call" if params["arguments"]["n"] == 1 => Vec::new(),
        "tools/call" => vec![(
            millis(1_000),
            json!({"content": [{"type": "text", "text": "2"}]}),
        )],
        _ => Vec::new(),
    });
    let pool = pool(&script);
    let (one, other) = (pool.session("one"), pool.session("other"));
    let mine = one.acquire(&server()).await.expect("it starts");
    let theirs = other.acquire(&server()).await.expect("it is there");

    let (cancelled, answered) =
        futures::join!(timeout(millis(300), ask(&mine, 1)), ask(&theirs, 2));

    assert!(cancelled.is_err());
    assert_eq!(answered.expect("it goes on"), "2");
    sleep(millis(10)).await;
    let calls = script.received("tools/call");
    let first = calls
        .iter()
        .find(|call| call["params"]["arguments"]["n"] == 1);
    let notices = script.received("notifications/cancelled");
    assert_eq!(notices.len(), 1);
    assert_eq!(
        Some(&notices[0]["params"]["requestId"]),
        first.map(|call| &call["id"])
    );
}

#[tokio::test(start_paused = true)]
async fn prompts_resources_and_pings_go_over_the_wire() {
    let capabilities = json!({"prompts": {}, "resources": {}});
    let script = Script::new(capabilities, |method, params| {
        let answer = match method {
            "prompts/get" => json!({"messages": [], "description": params["name"]}),
            "resources/read" => json!({"contents": [{"uri": params["uri"], "text": "t"}]}),
            "ping" => json!({}),
            _ => return Vec::new(),
        };
        vec![(millis(0), answer)]
    });
    let link = connect(&script).await;

    let prompt = GetPromptRequestParams::new("ask");
    let prompt = Arc::clone(&link).get_prompt(prompt, claimed());
    assert_eq!(
        prompt.await.expect("a prompt").description.as_deref(),
        Some("ask")
    );
    let resource = ReadResourceRequestParams::new("x:1");
    let resource = Arc::clone(&link).read_resource(resource, claimed());
    assert_eq!(resource.await.expect("a resource").contents.len(), 1);
    Arc::clone(&link).ping().await.expect("it lives");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_killed_ends_its_calls() {
    let script = Script::new(json!({}), |_, _| Vec::new());
    let link = connect(&script).await;
    let request = ReadResourceRequestParams::new("x:1");
    let call = Arc::clone(&link).read_resource(request, claimed());
    let call = tokio::spawn(call);
    sleep(millis(10)).await;

    link.kill();

    let called = timeout(millis(10), call)
        .await
        .expect("at once")
        .expect("no panic");
    assert_eq!(called.expect_err("it was sent").class(), Class::Unknown);
    let closed = Arc::clone(&link).close(millis(10)).await;
    assert!(closed.killed);
}
