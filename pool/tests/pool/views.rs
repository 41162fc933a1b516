//! What sessions see of a server's lists.

use std::sync::Arc;

use steadfast_classify::Class;
use steadfast_pool::{PoolEvent, Refused, ServerConfig};
use tokio::time::{advance, sleep};

use crate::support::{
    Listing, call, millis, pool, refusal, secs, server, settle, slow, spawn_call, told, tools,
};

#[tokio::test(start_paused = true)]
async fn l01_a_changed_list_is_asked_for_a_few_times_and_seen_by_all_through_their_filters() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.announces = true);
    let sessions: Vec<_> = (0..10).map(|n| pool.session(n.to_string())).collect();
    let mut leases = Vec::new();
    for (n, session) in sessions.iter().enumerate() {
        let config = ServerConfig::stdio("a", "fake");
        let config = match n {
            0 => config,
            _ => config.exclude_tools([if n % 2 == 0 { "r" } else { "new" }]),
        };
        let config = config.build().expect("a good configuration");
        leases.push(session.acquire(&config).await.expect("it starts"));
    }
    world.plan("a", |plan| {
        plan.lists = [Listing::Tools(vec!["new", "r", "i"])].into()
    });

    for _ in 0..50 {
        world.last("a").change();
        advance(millis(2)).await;
    }
    sleep(millis(500)).await;

    assert!(
        world.last("a").lists().len() <= 1 + 3,
        "{:?}",
        world.last("a").lists()
    );
    assert_eq!(tools(&leases[0]), ["new", "r", "i"]);
    for (n, lease) in leases.iter().enumerate().skip(1) {
        let want: &[&str] = if n % 2 == 0 {
            &["new", "i"]
        } else {
            &["r", "i"]
        };
        assert_eq!(tools(lease), want);
    }
    let refused = call(&leases[0]).await.expect_err("the tool is gone");
    assert_eq!(refused.find_source::<Refused>(), Some(&Refused::NoSuchTool));
    assert_eq!(world.last("a").executed(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_tool_is_left_to_a_server_that_does_not_announce_changes() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.lists = [Listing::Tools(vec!["r"])].into());
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    call(&lease).await.expect("the server knows better");

    // Nor is it refused while the list is known to be an old one.
    world.plan("a", |plan| plan.announces = true);
    assert_eq!(refusal(call(&lease).await), Class::Rejected);
    world.last("a").change();
    settle().await;
    call(&lease).await.expect("it may be the one that is new");
}

#[tokio::test(start_paused = true)]
async fn race_v2_c13_a_list_of_an_old_connection_does_not_replace_that_of_a_new_one() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.list = secs(5);
        plan.lists = [Listing::Tools(vec!["old"]), Listing::Tools(vec!["new"])].into();
    });
    world.last("a").change();
    sleep(secs(1)).await;
    assert_eq!(world.last("a").lists().len(), 2, "it is being asked for");

    world.last("a").crash();
    settle().await;
    world.plan("a", |plan| plan.list = secs(0));
    session
        .acquire(&server("a"))
        .await
        .expect("it is made anew");
    sleep(secs(60)).await;

    assert_eq!(tools(&lease), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn race_w66_prompts_pass_the_same_filter_and_resources_none() {
    let (pool, _world) = pool();
    let config = ServerConfig::stdio("a", "fake").include_tools(["ask(what)", "r"]);
    let config = config.build().expect("a good configuration");
    let session = pool.session("s");
    let lease = session.acquire(&config).await.expect("it starts");

    let prompts = lease.prompts().prompts;

    let names: Vec<_> = prompts.iter().map(|prompt| &*prompt.name).collect();
    assert_eq!(names, ["ask"]);
    assert_eq!(tools(&lease), ["r"]);
    assert_eq!(lease.resources().resources.len(), 1);
    let ask = rmcp::model::GetPromptRequestParams::new;
    lease.get_prompt(ask("ask")).await.expect("it passes");
    assert_eq!(
        refusal(lease.get_prompt(ask("tell")).await),
        Class::Rejected
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_refresh_keeps_the_last_good_list_and_marks_it() {
    let (pool, world) = pool();
    let mut events = pool.events();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let generation = lease.tools().generation;

    for hangs in [false, true] {
        let bad = if hangs {
            Listing::Hangs
        } else {
            Listing::Fails
        };
        world.plan("a", |plan| plan.lists = [bad].into());
        world.last("a").change();
        sleep(secs(31)).await;
        assert_eq!(tools(&lease), ["r", "w", "i"]);
        assert!(lease.tools().stale.is_some());
        assert_eq!(lease.tools().generation, generation);
    }
    let stale = told(&mut events)
        .into_iter()
        .filter(|event| matches!(event, PoolEvent::ListsChanged { stale: Some(_), .. }));
    assert_eq!(stale.count(), 2);
    world.plan("a", |plan| plan.lists = [Listing::default()].into());
    world.last("a").change();
    sleep(secs(1)).await;
    assert!(lease.tools().stale.is_none());
    assert_eq!(lease.tools().generation, generation + 1);
}

#[tokio::test(start_paused = true)]
async fn news_that_come_while_a_list_is_asked_for_are_not_lost() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.list = secs(1);
        plan.lists = [Listing::Tools(vec!["one"]), Listing::Tools(vec!["two"])].into();
    });

    world.last("a").change();
    sleep(millis(500)).await;
    world.last("a").change();
    sleep(secs(5)).await;

    assert_eq!(tools(&lease), ["two"]);
    assert_eq!(world.last("a").lists().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_does_not_disturb_calls() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| plan.lists = [Listing::Hangs].into());
    let called = spawn_call(&lease, slow(&lease, 2_000));

    world.last("a").change();

    called.await.expect("no panic").expect("it goes on");
}

#[tokio::test(start_paused = true)]
async fn sessions_with_equal_filters_share_one_projection() {
    let (pool, world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let filtered = |tool: &str| {
        let config = ServerConfig::stdio("a", "fake").exclude_tools([tool]);
        config.build().expect("a good configuration")
    };
    let mine = one.acquire(&filtered("w")).await.expect("it starts");
    let theirs = other.acquire(&filtered("w")).await.expect("it is there");
    let third = other.acquire(&filtered("r")).await.expect("it is there");

    let shared = mine.tools().tools;
    assert!(Arc::ptr_eq(&shared, &theirs.tools().tools));
    assert!(Arc::ptr_eq(&shared, &mine.tools().tools), "asked again");
    assert!(!Arc::ptr_eq(&shared, &third.tools().tools));

    world.last("a").change();
    sleep(secs(1)).await;
    assert!(
        !Arc::ptr_eq(&shared, &mine.tools().tools),
        "a new generation"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_say_what_it_offers_cannot_be_had() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.lists = [Listing::Fails].into());
    let session = pool.session("s");

    let failure = session.acquire(&server("a")).await.expect_err("no tools");

    assert!(failure.to_string().contains("cannot list"), "{failure}");
    assert_eq!(world.alive(), 0);
    // Where there is an older list, it will do.
    world.plan("a", |plan| plan.lists = [Listing::default()].into());
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| plan.lists = [Listing::Fails].into());
    world.last("a").crash();
    settle().await;
    session
        .acquire(&server("a"))
        .await
        .expect("it is made anew");
    assert_eq!(tools(&lease), ["r", "w", "i"]);
    assert!(lease.tools().stale.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_server_could_not_list_its_tools_was_not_sent() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    for (listing, class) in [
        (Listing::Garbled, Class::NotSent),
        (Listing::Fails, Class::Answered),
    ] {
        world.plan("a", |plan| plan.lists = [listing].into());

        let failure = call(&lease).await.expect_err("it has no tools");

        assert_eq!(failure.class(), class);
        assert!(!failure.may_have_run(), "{failure}");
        assert!(failure.to_string().contains("list"), "{failure}");
    }
    assert_eq!(world.last("a").executed(), 0);
}
