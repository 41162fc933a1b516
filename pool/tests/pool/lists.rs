//! What is told of a server's lists, and how often it is asked for them.

use steadfast_pool::{CallSettings, PoolEvent, PoolSettings, ServerConfig};
use tokio::time::{Instant, sleep};

use crate::support::{Listing, millis, pool, pool_with, secs, server, settle, told};

/// What was told to be missing since the last time.
fn missing(events: &mut tokio::sync::broadcast::Receiver<PoolEvent>) -> Vec<Vec<String>> {
    let tools = told(events).into_iter().filter_map(|event| match event {
        PoolEvent::ToolsMissing { tools, .. } => Some(tools),
        _ => None,
    });
    tools
        .map(|tools| tools.iter().map(ToString::to_string).collect())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_named_and_is_not_there_is_told_once() {
    let (pool, _world) = pool();
    let mut events = pool.events();
    let (one, other) = (pool.session("one"), pool.session("other"));
    // `ask` is a prompt, and the filter is for prompts too.
    let names = || ServerConfig::stdio("a", "fake").include_tools(["w", "ask", "write(path)"]);
    let config = names().build().expect("a good configuration");
    let more = names()
        .tool("reed", CallSettings::new().with_long(true))
        .tool("ask", CallSettings::new().with_long(true));
    let more = more.build().expect("a good configuration");

    let _first = one.acquire(&config).await.expect("it starts");
    assert_eq!(missing(&mut events), [["write"]]);
    let _second = other.acquire(&config).await.expect("it is there");
    assert!(missing(&mut events).is_empty(), "it was told");

    let _lease = other.lease(&more).expect("it is open");
    assert_eq!(missing(&mut events), [["ask", "reed"]], "no prompt is long");
    let _plain = other.acquire(&server("a")).await.expect("it is there");
    assert!(missing(&mut events).is_empty(), "it names none");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_missing_where_nobody_knows_what_there_is() {
    let (pool, world) = pool();
    let mut events = pool.events();
    let session = pool.session("s");
    let config = ServerConfig::stdio("a", "fake").include_tools(["write"]);
    let config = config.build().expect("a good configuration");
    world.plan("a", |plan| plan.lists = [Listing::Fails].into());

    session.acquire(&config).await.expect_err("no tools");
    let _lease = session.lease(&config).expect("it is open");

    assert!(missing(&mut events).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_news_after_each_list_is_asked_ever_more_seldom() {
    let (pool, world) = pool_with(PoolSettings::default());
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");
    let link = world.last("a");
    let (begun, before) = (Instant::now(), link.lists().len());

    // Two minutes of a change 10 ms after each list.
    let mut seen = before;
    link.change();
    while begun.elapsed() < secs(120) {
        sleep(millis(10)).await;
        if link.lists().len() > seen {
            seen = link.lists().len();
            link.change();
        }
    }

    let lists = link.lists().len() - before;
    assert!((9..=13).contains(&lists), "{lists}, not 1,200");
    // Once it was quiet its news are heard at once again.
    sleep(secs(60)).await;
    let before = link.lists().len();
    link.change();
    sleep(millis(150)).await;
    settle().await;
    assert_eq!(link.lists().len(), before + 1);
}
