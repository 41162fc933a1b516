//! Grace, idle allowance, and coming back.

use futures::{future::join_all, join};
use rmcp::model::ReadResourceRequestParams;
use steadfast_classify::Class;
use steadfast_pool::{PoolEvent, ServerConfig, Status};
use tokio::{
    task::yield_now,
    time::{advance, sleep, timeout},
};

use crate::support::{
    call, entry, millis, pool, pool_with, refusal, secs, server, settle, slots, slow, spawn_call,
    status, timed, unpooled,
};

#[tokio::test(start_paused = true)]
async fn sessions_share_one_connection() {
    let (pool, world) = pool();
    let sessions: Vec<_> = (0..3).map(|n| pool.session(n.to_string())).collect();

    let mut leases = Vec::new();
    for session in &sessions {
        leases.push(session.acquire(&server("a")).await.expect("it starts"));
    }

    assert_eq!(world.starts("a").len(), 1);
    assert_eq!(entry(&pool, "a").refs, 3);
    call(&leases[2]).await.expect("it works");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn attach_within_the_grace_keeps_the_connection() {
    let (pool, world) = pool();
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));

    sleep(secs(29)).await;
    let lease = session.acquire(&server("a")).await.expect("it is there");
    sleep(secs(60)).await;

    assert_eq!(world.starts("a").len(), 1);
    drop(lease);
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0, "the grace is over");
    assert_eq!(status(&pool, "a"), None);
}

#[tokio::test(start_paused = true)]
async fn lease_starts_nothing_until_it_is_called() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    settle().await;
    assert_eq!(world.starts("a").len(), 0);
    assert_eq!(status(&pool, "a"), Some(Status::Idle));

    call(&lease).await.expect("the call starts it");

    assert_eq!(world.starts("a").len(), 1);
    advance(millis(1)).await;
    assert_eq!(status(&pool, "a"), Some(Status::Connected));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_ended_for_a_connection_that_does_not_end_it() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.deaf = true);
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let sent = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;
    world.plan("a", |plan| plan.stuck = true);
    let queued = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;

    world.last("a").crash();

    let ended = timeout(secs(3), async { join!(sent, queued) }).await;
    let ended = ended.expect("nobody waits for ever");
    assert_eq!(refusal(ended.0.expect("no panic")), Class::Unknown);
    assert_eq!(refusal(ended.1.expect("no panic")), Class::NotSent);
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_the_slot_of_a_server_that_is_being_restarted() {
    let (pool, _world) = pool_with(slots(1));
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");
    let other = server("b");

    // Each asks a little later than the one before, so that one of them is in time.
    let asking = join_all((0..40).map(async |turns| {
        for _ in 0..turns {
            yield_now().await;
        }
        session.acquire(&other).await
    }));
    let (restarted, asked) = join!(pool.restart("a", None), asking);

    assert!(restarted[0].restarted);
    assert!(
        asked
            .into_iter()
            .all(|lease| refusal(lease) == Class::Rejected)
    );
}

#[tokio::test(start_paused = true)]
async fn race_w69_a_connection_that_is_being_closed_does_not_show_as_connected() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));

    sleep(secs(31)).await;

    assert_eq!(status(&pool, "a"), Some(Status::Closing));
    assert_eq!(pool.snapshot().total, 0);
    assert!(world.last("a").is_alive());
    assert!(entry(&pool, "a").pid.is_some(), "there still is a process");
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_a_retired_server_is_another_entry_even_in_a_restart() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(1));
    let session = pool.session("s");
    let config = server("a");
    let _lease = session.acquire(&config).await.expect("it starts");

    let (restarted, new) = join!(pool.restart("a", None), async {
        settle().await;
        pool.retire("a");
        session.acquire(&config).await
    });

    assert!(!restarted[0].restarted);
    new.expect("it comes back");
    assert_eq!(entry(&pool, "a").entry_index, Some(1));
}

#[tokio::test(start_paused = true)]
async fn who_must_not_share_does_not_share() {
    let (pool, world) = pool();
    let plain = pool.session("plain");
    let (red, blue) = ("red", "blue");
    let tagged = [red, red, blue].map(|tag| pool.session(tag).with_isolation(tag));
    let mut leases = vec![plain.acquire(&server("a")).await.expect("it starts")];
    for session in &tagged {
        leases.push(session.acquire(&server("a")).await.expect("it starts"));
    }
    assert_eq!(world.links("a").len(), 3, "plain, red and blue");

    let stateful = ServerConfig::stdio("b", "fake").shared(false);
    let stateful = stateful.build().expect("a good configuration");
    for session in [&plain, &plain, &tagged[0]] {
        leases.push(session.acquire(&stateful).await.expect("it starts"));
    }
    assert_eq!(world.links("b").len(), 2, "one for each session");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_plain_data_of_a_known_shape() {
    let (pool, _world) = pool_with(slots(4));
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));

    let json = serde_json::to_value(pool.snapshot()).expect("it is plain data");

    let want = serde_json::json!({
        "total": 1,
        "subprocessCount": 1,
        "slots": { "mode": "enforce", "limit": 4, "used": 1 },
        "servers": { "a": { "entryCount": 1, "entrySummary": [{
            "entryIndex": 0,
            "refs": 0,
            "status": "connected",
            "pid": 0,
            "inFlight": 0,
            "restarts": 0,
            "closesInMs": 30_000,
        }]}},
    });
    assert_eq!(json, want);
}

#[cfg(feature = "metrics")]
#[test]
fn what_happens_to_connections_is_counted() {
    use crate::support::{Connecting, Numbers};

    let numbers = Numbers::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");

    metrics::with_local_recorder(&numbers, || {
        runtime.block_on(async {
            let (pool, world) = pool_with(slots(1));
            world.plan("a", |plan| plan.close = secs(60));
            let session = pool.session("s");
            let _a = session.acquire(&server("a")).await.expect("it starts");
            assert_eq!(
                refusal(session.acquire(&server("b")).await),
                Class::Rejected
            );
            world.last("a").crash();
            settle().await;
            assert_eq!(numbers.get("steadfast.pool.connections server=a"), 0);
            sleep(secs(10)).await;
            world.plan("b", |plan| plan.starts = [Connecting::fails()].into());
            assert_eq!(refusal(session.acquire(&server("b")).await), Class::NotSent);
        });
    });

    for (name, want) in [
        ("steadfast.pool.starts server=a outcome=connected", 1),
        ("steadfast.pool.starts server=b outcome=not_sent", 1),
        ("steadfast.pool.starts server=b outcome=rejected", 1),
        ("steadfast.pool.losses server=a", 1),
        ("steadfast.pool.killed server=a", 1),
        ("steadfast.pool.slots.refusals", 1),
        ("steadfast.pool.slots.warnings", 2),
    ] {
        assert_eq!(numbers.get(name), want, "{name}: {numbers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_hear_of_a_loss_share_one_replacement() {
    let (pool, world) = pool();
    let mut events = pool.events();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");
    let leases = [
        one.acquire(&config).await.expect("it starts"),
        other.acquire(&config).await.expect("it is there"),
    ];
    world.plan("a", |plan| plan.close = secs(1));
    world.last("a").crash();

    // Asked for from within what hears of it.
    let heard = async {
        while !matches!(events.recv().await, Ok(PoolEvent::Failed { .. })) {}
        one.acquire(&config).await
    };
    let (heard, called) = join!(heard, async {
        settle().await;
        join_all(leases.iter().map(call)).await
    });

    heard.expect("it comes back");
    assert!(called.iter().all(Result::is_ok), "{called:?}");
    assert_eq!(world.starts("a").len(), 2);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_session_does_not_wait_for_the_end_of_another_ones_own_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = unpooled("a");
    drop(one.acquire(&config).await.expect("it starts"));
    settle().await;

    let (mine, theirs) = join!(timed(one.acquire(&config)), timed(other.acquire(&config)));

    mine.1.expect("it starts anew");
    theirs.1.expect("it starts");
    assert!(theirs.0 <= millis(1), "{:?}", theirs.0);
    assert!(mine.0 > secs(2), "{:?}", mine.0);
}

#[tokio::test(start_paused = true)]
async fn race_r24_t19_a_resource_asked_for_after_a_loss_comes_from_the_next_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(1));
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.last("a").crash();
    settle().await;

    let resource = ReadResourceRequestParams::new("file:///w");
    lease
        .read_resource(resource)
        .await
        .expect("it waits for it");

    assert_eq!(world.links("a").len(), 2);
}
