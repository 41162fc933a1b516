//! Races of starts.

use futures::join;
use steadfast_classify::Class;
use steadfast_pool::{PoolEvent, ServerConfig, SlotsFull, Status};
use tokio::time::{advance, sleep, timeout};

use crate::support::{
    Connecting, Listing, call, entry, keyed, millis, pool, pool_with, refusal, secs, server,
    settle, slots, status, timed, told, unpooled,
};

#[tokio::test(start_paused = true)]
async fn race_v21_4_a_failed_start_gives_its_slot_back_once() {
    let (pool, world) = pool_with(slots(1));
    world.plan("a", |plan| plan.starts = [Connecting::fails()].into());
    let session = pool.session("s");

    assert_eq!(refusal(session.acquire(&server("a")).await), Class::NotSent);

    assert_eq!(pool.slots().held.len(), 0);
    let _b = session.acquire(&server("b")).await.expect("it is free");
    assert_eq!(
        refusal(session.acquire(&server("a")).await),
        Class::Rejected
    );
}

#[tokio::test(start_paused = true)]
async fn race_r24_t17_a_failed_start_leaves_the_slot_of_its_sibling_alone() {
    let (pool, world) = pool_with(slots(1));
    let session = pool.session("s");
    let _x = session.acquire(&keyed("a", "x")).await.expect("it starts");
    world.plan("a", |plan| plan.starts = [Connecting::fails()].into());

    assert_eq!(
        refusal(session.acquire(&keyed("a", "y")).await),
        Class::NotSent
    );

    assert_eq!(
        refusal(session.acquire(&server("b")).await),
        Class::Rejected
    );
    assert_eq!(pool.slots().held.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn race_6r1_a_name_that_is_being_started_keeps_its_slot() {
    let (pool, world) = pool_with(slots(1).with_grace(secs(1)));
    let session = pool.session("s");
    let first = session.acquire(&keyed("a", "x")).await.expect("it starts");
    world.plan("a", |plan| plan.start = secs(10));
    let second = keyed("a", "y");

    let (acquired, other) = join!(session.acquire(&second), async {
        drop(first);
        sleep(secs(5)).await;
        assert_eq!(world.links("a")[0].closes(), 1, "the first is gone");
        session.acquire(&server("b")).await
    });

    assert_eq!(refusal(other), Class::Rejected);
    acquired.expect("it had its slot all the time");
}

#[tokio::test(start_paused = true)]
async fn race_w1_w14_starts_that_fail_leave_nothing_behind() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let both = [server("a"), unpooled("b")];
    for config in &both {
        world.plan(config.name(), |plan| {
            plan.starts = vec![Connecting::fails(); 3].into()
        });
        for _ in 0..3 {
            assert_eq!(refusal(session.acquire(config).await), Class::NotSent);
        }
    }

    assert_eq!(world.alive(), 0);
    session.close();
    advance(secs(61)).await;
    assert_eq!(pool.snapshot().servers.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w25_a_start_that_hangs_ends_at_its_limit_and_frees_its_slot() {
    let (pool, world) = pool_with(slots(1));
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());
    let session = pool.session("s");

    let (took, acquired) = timed(session.acquire(&server("a"))).await;

    assert_eq!(refusal(acquired), Class::NotSent);
    assert!(took >= secs(30) && took <= secs(31), "{took:?}");
    assert_eq!(world.alive(), 0);
    session
        .acquire(&server("b"))
        .await
        .expect("the slot is free");
}

#[tokio::test(start_paused = true)]
async fn race_w25_a_list_that_hangs_ends_at_the_same_limit() {
    let (pool, world) = pool();
    world.plan("a", |plan| {
        plan.start = secs(10);
        plan.lists = [Listing::Hangs].into();
    });
    let session = pool.session("s");

    let (took, acquired) = timed(session.acquire(&server("a"))).await;

    assert_eq!(refusal(acquired), Class::NotSent);
    assert_eq!(took, secs(30), "counted from the spawn");
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w62_an_unpooled_start_has_its_limit_too() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());

    let session = pool.session("s");
    let (took, acquired) = timed(session.acquire(&unpooled("a"))).await;

    assert_eq!(refusal(acquired), Class::NotSent);
    assert!(took >= secs(5) && took <= secs(6), "{took:?}");
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_r23_t4_a_websocket_is_remote_to_start_and_local_to_come_back() {
    let (pool, world) = pool();
    let config = ServerConfig::websocket("a", "ws://localhost/mcp");
    let config = config.build().expect("a good configuration");
    let session = pool.session("s");
    world.plan("a", |plan| {
        plan.starts = [Connecting::Hangs, Connecting::fails()].into()
    });

    let (took, _) = timed(session.acquire(&config)).await;
    assert!(took >= secs(5) && took <= secs(6), "{took:?}");
    let failure = session
        .acquire(&config)
        .await
        .expect_err("the second fails");
    assert_eq!(failure.class(), Class::NotSent);

    let lease = session.lease(&config).expect("it is open");
    let failure = call(&lease).await.expect_err("there is a pause");
    assert_eq!(failure.retry_in(), Some(secs(5)));
}

#[tokio::test(start_paused = true)]
async fn race_wr4_only_processes_of_ours_count_as_such() {
    let (pool, _world) = pool();
    let socket = ServerConfig::websocket("socket", "ws://localhost/mcp");
    let socket = socket.build().expect("a good configuration");
    let session = pool.session("s");
    let _socket = session.acquire(&socket).await.expect("it starts");
    let _program = session.acquire(&server("a")).await.expect("it starts");

    let snapshot = pool.snapshot();

    assert_eq!((snapshot.total, snapshot.subprocess_count), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn race_wr6_nothing_that_a_pool_shows_holds_a_secret() {
    const CANARY: &str = "canary-4711";
    let (pool, world) = pool();
    let mut events = pool.events();
    let config = ServerConfig::stdio("a", "fake")
        .arg(CANARY)
        .env("TOKEN", CANARY);
    let config = config.build().expect("a good configuration");
    let session = pool.session("s").with_isolation(CANARY);
    let lease = session.acquire(&config).await.expect("it starts");
    world.last("a").crash();
    settle().await;

    let snapshot = pool.snapshot();
    let json = serde_json::to_string(&snapshot).expect("it is plain data");
    let shown = format!(
        "{pool:?}{session:?}{lease:?}{snapshot:?}{json}{:?}",
        told(&mut events)
    );

    assert!(shown.contains("entryIndex"));
    assert!(!shown.contains(CANARY), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn race_w21_a_slot_belongs_to_a_whole_name() {
    let (pool, _world) = pool_with(slots(2).with_grace(secs(0)));
    let session = pool.session("s");
    let a = session.acquire(&server("a")).await.expect("it starts");
    let _ab = session.acquire(&server("a::b")).await.expect("it starts");

    drop(a);
    settle().await;

    let held = pool.slots().held;
    assert_eq!(
        held.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["a::b"]
    );
}

#[tokio::test(start_paused = true)]
async fn race_w23_what_is_refused_in_one_pass_is_told_once() {
    let (pool, _world) = pool_with(slots(2));
    let mut events = pool.events();
    let session = pool.session("s");
    let configs = ["a", "b", "c", "d"].map(server);

    let acquired = session.acquire_all(&configs).await;

    let failures: Vec<_> = acquired
        .iter()
        .filter_map(|(_, r)| r.as_ref().err())
        .collect();
    assert_eq!(failures.len(), 2);
    assert!(
        failures
            .iter()
            .all(|failure| failure.find_source::<SlotsFull>().is_some())
    );
    let told: Vec<_> = told(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            PoolEvent::SlotsRefused {
                session,
                servers,
                limit,
                ..
            } => Some((session.to_string(), servers.len(), limit)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [("s".to_owned(), 2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn race_w65_unpooled_connections_take_slots_and_give_them_back() {
    let (pool, _world) = pool_with(slots(2));
    let session = pool.session("s");
    let configs = ["a", "b", "c"].map(unpooled);

    let acquired = session.acquire_all(&configs).await;
    assert_eq!(
        acquired.iter().filter(|(_, lease)| lease.is_ok()).count(),
        2
    );

    drop(acquired);
    settle().await;
    assert_eq!(pool.slots().held.len(), 0, "they close at once");
    session.acquire(&configs[2]).await.expect("there is room");
}

#[tokio::test(start_paused = true)]
async fn race_w43_a_start_called_off_by_its_last_waiter_is_undone_at_once() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");

    let both = async { join!(one.acquire(&config), other.acquire(&config)) };
    assert!(timeout(secs(1), both).await.is_err());
    settle().await;

    assert_eq!(world.alive(), 0);
    assert_eq!(status(&pool, "a"), None);
    // It said nothing about the server.
    let (took, lease) = timed(one.acquire(&config)).await;
    lease.expect("it starts");
    assert_eq!(took, secs(3));
}

#[tokio::test(start_paused = true)]
async fn race_w43_a_connection_called_off_while_it_lists_is_gone_before_the_next_begins() {
    let (pool, world) = pool();
    world.plan("a", |plan| {
        plan.list = secs(3);
        plan.close = millis(300);
    });
    let session = pool.session("s");
    let config = server("a");

    assert!(timeout(secs(1), session.acquire(&config)).await.is_err());
    session.acquire(&config).await.expect("it starts anew");

    assert_eq!(world.links("a").len(), 2);
    assert_eq!(world.links("a")[0].closes(), 1);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_disturbs_nobody() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");

    let (left, stayed) = join!(
        timeout(secs(1), one.acquire(&config)),
        other.acquire(&config)
    );

    assert!(left.is_err());
    stayed.expect("it goes on");
    assert_eq!(world.starts("a").len(), 1);
    assert_eq!(entry(&pool, "a").refs, 0);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_leaves_as_the_start_succeeds_leaves_an_idle_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let session = pool.session("s");
    let config = server("a");

    // Both happen at three seconds; whichever comes first, nothing is left over.
    let left = timeout(secs(3), session.acquire(&config)).await;
    drop(left);
    settle().await;

    match status(&pool, "a") {
        None => assert_eq!(world.alive(), 0),
        Some(status) => {
            assert_eq!(status, Status::Connected);
            assert!(entry(&pool, "a").closes_in.is_some());
        }
    }
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn everybody_who_waits_for_a_start_gets_its_failure() {
    let (pool, world) = pool();
    world.plan("a", |plan| {
        plan.start = secs(3);
        plan.starts = [Connecting::fails()].into();
    });
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");

    let (first, second) = join!(one.acquire(&config), async {
        sleep(secs(1)).await;
        other.acquire(&config).await
    });

    for failed in [first, second] {
        let failure = failed.expect_err("the start failed");
        assert!(
            failure.to_string().contains("it ended at once"),
            "{failure}"
        );
    }
    assert_eq!(world.starts("a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_panics_is_a_failed_start() {
    let (pool, world) = pool_with(slots(1));
    world.plan("a", |plan| plan.starts = [Connecting::Panics].into());
    let session = pool.session("s");

    let failed = timeout(secs(1), session.acquire(&server("a"))).await;

    assert_eq!(
        refusal(failed.expect("nobody waits for ever")),
        Class::NotSent
    );
    assert_eq!(pool.slots().held.len(), 0);
    session
        .acquire(&server("a"))
        .await
        .expect("the next is good");
}
