use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Script, connect, millis, pool, server, tool};
use crate::Link as _;

/// A server whose pages of tools are as `next` says: the cursor it gives for a cursor.
fn paged(next: impl Fn(Option<&str>) -> Option<String> + Send + Sync + 'static) -> Script {
    Script::new(json!({"tools": {}}), move |method, params| {
        assert_eq!(
            method == "tools/list",
            method != "notifications/initialized"
        );
        if method != "tools/list" {
            return Vec::new();
        }
        let cursor = params["cursor"].as_str();
        let name = format!("tool of {}", cursor.unwrap_or("the first page"));
        let mut page = json!({"tools": [tool(&name)]});
        if let Some(next) = next(cursor) {
            page["nextCursor"] = next.into();
        }
        vec![(millis(0), page)]
    })
}

#[tokio::test(start_paused = true)]
async fn l03_all_pages_are_read() {
    let script = paged(|cursor| match cursor {
        None => Some("2".to_owned()),
        Some("2") => Some("3".to_owned()),
        Some(_) => None,
    });
    let link = connect(&script).await;

    let tools = link.list_tools().await.expect("three pages");

    let names: Vec<_> = tools.items.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["tool of the first page", "tool of 2", "tool of 3"]);
}

#[tokio::test(start_paused = true)]
async fn l03_a_cursor_that_comes_again_is_an_error_and_no_half_list() {
    let same = paged(|_| Some("same".to_owned()));
    let failure = connect(&same)
        .await
        .list_tools()
        .await
        .expect_err("endless");
    assert!(failure.to_string().contains("endless"), "{failure}");
    assert!(same.received("tools/list").len() <= 3);

    let turns = paged(|cursor| Some(if cursor == Some("b") { "a" } else { "b" }.to_owned()));
    let failure = connect(&turns)
        .await
        .list_tools()
        .await
        .expect_err("endless");
    assert!(failure.to_string().contains("again"), "{failure}");
    assert!(turns.received("tools/list").len() <= 4);
}

#[tokio::test(start_paused = true)]
async fn l03_pages_without_end_are_an_error_at_a_thousand() {
    let script = paged(|cursor| {
        let page: u32 = cursor.map_or(0, |cursor| cursor.parse().expect("ours"));
        Some((page + 1).to_string())
    });
    let failure = connect(&script)
        .await
        .list_tools()
        .await
        .expect_err("endless");

    assert!(failure.to_string().contains("1000 pages"), "{failure}");
    assert_eq!(script.received("tools/list").len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn l03_an_empty_cursor_is_sent_back() {
    let script = paged(|cursor| cursor.is_none().then(String::new));

    let tools = connect(&script)
        .await
        .list_tools()
        .await
        .expect("two pages");

    assert_eq!(tools.items.len(), 2);
    let asked = script.received("tools/list");
    assert_eq!(asked[0]["params"].get("cursor"), None);
    assert_eq!(asked[1]["params"]["cursor"], "");
}

#[tokio::test(start_paused = true)]
async fn l03_one_limit_holds_for_all_pages() {
    let script = Script::new(json!({"tools": {}}), |method, params| {
        match (method, params["cursor"].as_str()) {
            ("tools/list", None) => {
                let page = json!({"tools": [tool("one")], "nextCursor": "2"});
                vec![(millis(20_000), page)]
            }
            // The second page hangs.
            _ => Vec::new(),
        }
    });
    let pool = pool(&script);
    let session = pool.session("s");
    let begun = Instant::now();

    let failure = session.acquire(&server()).await.expect_err("it hangs");

    assert!(
        failure.to_string().contains("not ready in time"),
        "{failure}"
    );
    assert!(begun.elapsed() < millis(31_000), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_server_does_not_have_it_is_not_asked_for() {
    let script = Script::new(json!({"resources": {}}), |method, _| match method {
        "resources/list" => vec![(
            millis(0),
            json!({"resources": [{"uri": "x:1", "name": "one"}]}),
        )],
        "resources/templates/list" => {
            let error = json!({"code": -32601, "message": "no such method"});
            vec![(millis(0), json!({ "error": error }))]
        }
        "notifications/initialized" => Vec::new(),
        other => panic!("{other} was asked for"),
    });
    let pool = pool(&script);
    let session = pool.session("s");

    let lease = session
        .acquire(&server())
        .await
        .expect("resources are something");

    let resources = lease.resources();
    assert_eq!(
        (resources.resources.len(), resources.templates.len()),
        (1, 0)
    );
    assert!(resources.stale.is_none(), "no templates are no error");
    assert!(lease.tools().stale.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_beside_the_tools_that_hangs_does_not_hold_up_the_start() {
    let script = Script::new(
        json!({"tools": {}, "prompts": {}}),
        |method, _| match method {
            "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
            _ => Vec::new(),
        },
    );
    let pool = pool(&script);
    let session = pool.session("s");
    let begun = Instant::now();

    let lease = session
        .acquire(&server())
        .await
        .expect("its tools are there");

    assert!(begun.elapsed() < millis(1_100), "{:?}", begun.elapsed());
    assert_eq!(lease.tools().tools.len(), 1);
    assert!(lease.prompts().stale.is_some());
}

/// A server with one of each, whose call says that two of its lists have changed.
fn changing() -> Script {
    let capabilities = json!({"tools": {}, "prompts": {}, "resources": {}});
    Script::new(capabilities, |method, _| {
        let news = |list| json!({"method": format!("notifications/{list}/list_changed")});
        let answer = match method {
            "tools/list" => json!({"tools": [tool("w")]}),
            "prompts/list" => json!({"prompts": [{"name": "ask"}]}),
            "resources/list" => json!({"resources": []}),
            "resources/templates/list" => json!({"resourceTemplates": []}),
            "tools/call" => {
                let answers = [news("prompts"), news("resources"), json!({"content": []})];
                return answers.map(|answer| (millis(0), answer)).to_vec();
            }
            _ => return Vec::new(),
        };
        vec![(millis(0), answer)]
    })
}

#[tokio::test(start_paused = true)]
async fn each_changed_list_is_asked_for_anew_and_no_other() {
    let script = changing();
    let pool = pool(&script);
    let session = pool.session("s");
    let lease = session.acquire(&server()).await.expect("it starts");

    let call = lease.tool("w");
    let called = tower::ServiceExt::oneshot(lease.clone(), call);
    called.await.expect("it works");
    sleep(millis(500)).await;

    let asked = |method: &str| -> usize { script.received(method).len() };
    assert_eq!((asked("tools/list"), asked("prompts/list")), (1, 2));
    let resources = (asked("resources/list"), asked("resources/templates/list"));
    assert_eq!(resources, (2, 2));
    let generations = (lease.prompts().generation, lease.tools().generation);
    assert_eq!(generations, (2, 1));
}
