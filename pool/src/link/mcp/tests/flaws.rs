use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use steadfast_classify::{Class, Failure};
use tower::ServiceExt as _;

use super::{Script, connect, millis, pool, server, tool};
use crate::{Fault, Lease, Link as _, PoolEvent};

/// A server whose one page of tools is this, and which tells when it changes.
fn lists(tools: Value) -> Script {
    let capabilities = json!({"tools": {"listChanged": true}, "prompts": {}});
    Script::new(capabilities, move |method, _| match method {
        "tools/list" => vec![(millis(0), json!({ "tools": tools }))],
        "prompts/list" => {
            let prompts = json!([{"name": "ask"}, {"name": 7}, {"name": "ask"}]);
            vec![(millis(0), json!({ "prompts": prompts }))]
        }
        "tools/call" => vec![(millis(0), json!({"content": []}))],
        _ => Vec::new(),
    })
}

async fn call(lease: &Lease, tool: &str) -> Result<CallToolResult, Failure> {
    lease.clone().oneshot(lease.tool(tool)).await
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_or_is_there_twice_is_left_out_and_told() {
    let second = json!({"name": "good", "inputSchema": {"type": "object", "title": "second"}});
    let script = lists(json!([tool("good"), {"name": "bad"}, 7, second, tool("last")]));
    let pool = pool(&script);
    let mut events = pool.events();
    let session = pool.session("s");

    let lease = session.acquire(&server()).await.expect("most is good");

    let view = lease.tools();
    let names: Vec<_> = view.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["good", "last"]);
    assert!(
        !view.tools[0].input_schema.contains_key("title"),
        "the first"
    );
    assert!(view.stale.is_none(), "it is the list of now");
    let told: Vec<_> = view.flaws.iter().map(ToString::to_string).collect();
    assert!(
        told[0].starts_with(r#""bad" cannot be read: missing field `inputSchema`"#),
        "{told:?}"
    );
    assert!(
        told[1].starts_with(r##""#3" cannot be read: "##),
        "{told:?}"
    );
    assert_eq!(told[2], r#""good" is there twice, the first counts"#);
    assert_eq!(told.len(), 3);
    let prompts = lease.prompts();
    assert_eq!((prompts.prompts.len(), prompts.flaws.len()), (1, 2));
    let mut lists = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let PoolEvent::ListFlawed { list, flaws, .. } = event {
            lists.push((list, flaws.len()));
        }
    }
    assert_eq!(lists, [("tools", 3), ("prompts", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_could_not_be_read_may_be_called_all_the_same() {
    let script = lists(json!([tool("good"), {"name": "bad"}]));
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("most is good");

    call(&lease, "bad").await.expect("the server has it");

    // A flaw that hides nothing lets the list be believed.
    let script = lists(json!([tool("good"), tool("good")]));
    let pool = super::pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it is good");
    let failure = call(&lease, "bad").await.expect_err("there is none");
    assert_eq!(failure.class(), Class::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_which_nothing_can_be_read_is_an_error() {
    let script = lists(json!([{"name": "bad"}, {"name": "worse"}]));

    let failure = connect(&script)
        .await
        .list_tools()
        .await
        .expect_err("nothing");

    let told = failure.to_string();
    assert!(told.contains("nothing in the list can be read"), "{told}");
    assert!(
        told.contains(r#""bad""#) && told.contains("inputSchema"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_flawed_page_whose_cursor_cannot_be_read_is_no_half_list() {
    let script = Script::new(json!({"tools": {}}), |method, _| match method {
        "tools/list" => {
            let page = json!({"tools": [tool("good"), {"name": "bad"}], "nextCursor": 2});
            vec![(millis(0), page)]
        }
        _ => Vec::new(),
    });

    let failure = connect(&script).await.list_tools().await.expect_err("half");

    assert_eq!(failure.class(), Class::Unknown, "{failure}");
}

#[test]
fn a_reason_is_cut_short() {
    let flaw = crate::Flaw::unreadable("w", "x".repeat(10_000));

    let Fault::Unreadable(reason) = flaw.fault else {
        panic!("it is unreadable");
    };
    assert_eq!(reason.len(), 200);
}
