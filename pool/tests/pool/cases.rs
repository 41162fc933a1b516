//! Faults that people reported of other programs.

use std::num::NonZeroUsize;

use futures::{future::join_all, join};
use steadfast_classify::{Class, Failure, Phase};
use steadfast_pool::{
    Keepalive, PoolEvent, PoolSettings, Refused, ServerConfig, SlotsFull, Status,
};
use tokio::time::{Instant, advance, sleep, timeout};

use crate::support::{
    Connecting, MOMENT, call, entry, keyed, millis, pool, pool_with, refusal, secs, server, settle,
    slots, slow, spawn_call, status, timed, told, unpooled,
};

#[tokio::test(start_paused = true)]
async fn a11_a_connection_that_ended_by_itself_is_never_called_healthy_or_used() {
    let (pool, world) = pool();
    let (mut one, mut other) = (pool.events(), pool.events());
    let sessions = (pool.session("one"), pool.session("other"));
    let _leases = (
        sessions.0.acquire(&server("a")).await.expect("it starts"),
        sessions.1.acquire(&server("a")).await.expect("it is there"),
    );

    world.last("a").crash();
    settle().await;

    assert_eq!(status(&pool, "a"), Some(Status::Idle));
    for events in [&mut one, &mut other] {
        let failed = told(events);
        let failed = failed
            .iter()
            .filter(|event| matches!(event, PoolEvent::Failed { .. }));
        assert_eq!(failed.count(), 1);
    }
    let lease = sessions.0.acquire(&server("a")).await.expect("a new one");
    call(&lease).await.expect("it works");
    assert_eq!(world.last("a").executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn b02_a_start_that_takes_too_long_is_tried_again_by_the_next_who_asks() {
    let (pool, world) = pool();
    let limited = |secs_| {
        let config = ServerConfig::stdio("a", "fake").discovery_timeout(secs(secs_));
        config.build().expect("a good configuration")
    };
    let session = pool.session("s");
    world.plan("a", |plan| plan.start = secs(4));

    let (took, acquired) = timed(session.acquire(&limited(2))).await;
    let failure = acquired.expect_err("it takes four");
    assert_eq!(
        (failure.class(), failure.phase()),
        (Class::NotSent, Some(Phase::Connect))
    );
    assert!(took >= secs(2) && took <= secs(3), "{took:?}");
    assert_eq!(world.alive(), 0, "nothing is left of it");

    // The limit is no part of the key: whoever has more time gives more.
    session
        .acquire(&limited(10))
        .await
        .expect("four are enough");
    assert_eq!(world.starts("a").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn b04_what_no_layer_limits_has_a_limit_of_its_own() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    let never = rmcp::model::ReadResourceRequestParams::new("file:///never");
    let failure = lease.read_resource(never).await.expect_err("no answer");

    assert_eq!(
        (failure.class(), failure.phase()),
        (Class::Timeout, Some(Phase::Read))
    );
    assert_eq!(failure.elapsed(), Some(secs(60)));
    let shown = failure.to_string();
    assert!(
        shown.contains('a') && shown.contains("resources/read"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn f01_a_server_that_ends_after_each_handshake_is_not_started_in_a_loop() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    let begun = Instant::now();

    while begun.elapsed() < secs(76) {
        if call(&lease).await.is_ok() {
            world.last("a").crash();
        }
        sleep(millis(100)).await;
    }

    let starts = world.starts("a");
    let gaps: Vec<_> = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(gaps, [0, 5, 5, 5, 30, 30]);
    assert_eq!(status(&pool, "a"), Some(Status::Failed));
}

#[tokio::test(start_paused = true)]
async fn f03_no_server_is_given_up_for_ever() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    // An outage that is longer than all delays together.
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::fails(); 5].into()
    });
    world.last("a").crash();
    settle().await;
    for _ in 0..60 {
        let _ = call(&lease).await;
        sleep(secs(1)).await;
    }
    assert_eq!(status(&pool, "a"), Some(Status::Failed));
    session.acquire(&server("a")).await.expect("it is back");

    // Many losses, each after two minutes of health.
    for _ in 0..8 {
        sleep(secs(120)).await;
        world.last("a").crash();
        settle().await;
        call(&lease).await.expect("it comes back at once");
    }
}

#[tokio::test(start_paused = true)]
async fn f05_a_connection_that_fails_its_first_ping_each_time_comes_back_ever_more_slowly() {
    let keepalive = Keepalive::new(millis(500)).with_answer(millis(500));
    let settings = PoolSettings::default().with_keepalive(keepalive);
    let (pool, world) = pool_with(settings);
    world.plan("mute", |plan| plan.mute = true);
    let session = pool.session("s");
    let other = session.acquire(&server("other")).await.expect("it starts");
    let (mute, begun) = (server("mute"), Instant::now());

    while begun.elapsed() < secs(30) {
        let lease = timeout(millis(100), session.acquire(&mute)).await;
        sleep(secs(1)).await;
        drop(lease);
        let (took, called) = timed(call(&other)).await;
        called.expect("it does not suffer");
        assert!(took < millis(100), "{took:?}");
    }

    let starts = world.starts("mute");
    let gaps: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() <= 5, "{gaps:?}");
    assert!(gaps[1..].iter().all(|gap| *gap >= secs(5)), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn i09_a_changed_configuration_leaves_the_old_server_to_those_who_have_it() {
    let (pool, world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let old = one.acquire(&keyed("a", "old")).await.expect("it starts");
    let theirs = other
        .acquire(&keyed("a", "old"))
        .await
        .expect("it is there");

    let new = one.acquire(&keyed("a", "new")).await.expect("it starts");
    drop(old);
    sleep(secs(60)).await;
    call(&theirs).await.expect("somebody holds it");
    assert_eq!(world.alive(), 2);

    drop(theirs);
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 1, "nobody holds it");
    call(&new).await.expect("the new one is untouched");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn j03_a_call_after_a_return_is_not_cut_off_by_the_timer_of_the_last_leave() {
    let (pool, _world) = pool_with(PoolSettings::default().with_grace(secs(1)));
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(millis(800)).await;

    let lease = session.acquire(&server("a")).await.expect("it is there");
    let called = spawn_call(&lease, slow(&lease, 700));
    drop(lease);

    called.await.expect("no panic").expect("the call holds it");
}

#[tokio::test(start_paused = true)]
async fn j04_calls_run_side_by_side_on_one_server_and_on_several() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let a = session.acquire(&server("a")).await.expect("it starts");
    let b = session.acquire(&server("b")).await.expect("it starts");

    let (took, calls) = timed(join_all((0..5).map(|_| spawn_call(&a, slow(&a, 500))))).await;
    assert!(
        calls
            .into_iter()
            .all(|call| call.is_ok_and(|call| call.is_ok()))
    );
    assert!(took < millis(510), "{took:?}");

    let _slow = spawn_call(&a, slow(&a, 5_000));
    for _ in 0..100 {
        let (took, called) = timed(call(&b)).await;
        called.expect("it works");
        assert!(took < millis(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn j05_a_cancel_ends_one_call_and_nothing_else() {
    let (pool, world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let mine = one.acquire(&server("a")).await.expect("it starts");
    let theirs = other.acquire(&server("a")).await.expect("it is there");
    let left = spawn_call(&theirs, slow(&theirs, 2_000));
    let pid = entry(&pool, "a").pid;

    let cancelled = timeout(millis(300), spawn_and_wait(&mine)).await;

    assert!(cancelled.is_err());
    settle().await;
    assert_eq!(world.last("a").cancelled(), 1);
    left.await.expect("no panic").expect("it goes on");
    assert_eq!(entry(&pool, "a").pid, pid);
    assert_eq!(world.last("a").cancelled(), 1);
}

async fn spawn_and_wait(lease: &steadfast_pool::Lease) -> Result<(), Failure> {
    use tower::ServiceExt as _;

    lease.clone().oneshot(slow(lease, 5_000)).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn j07_one_limit_holds_for_all_sessions_and_for_what_is_not_shared() {
    let (pool, world) = pool_with(slots(2));
    let sessions: Vec<_> = (0..3).map(|n| pool.session(n.to_string())).collect();
    let configs = [server("a"), server("b"), server("c"), unpooled("d")];

    let (took, acquired) = timed(join_all(sessions.iter().map(|s| s.acquire_all(&configs)))).await;

    assert!(took <= MOMENT, "{took:?}");
    assert_eq!(world.alive(), 2);
    for (name, lease) in acquired.iter().flatten() {
        match (&**name, lease) {
            ("a" | "b", Ok(_)) => {}
            ("c" | "d", Err(failure)) => {
                assert_eq!(failure.class(), Class::Rejected);
                let full = failure
                    .find_source::<SlotsFull>()
                    .expect("it names the limit");
                assert_eq!(full.limit, 2);
                assert!(
                    failure.to_string().contains("all 2 server slots"),
                    "{failure}"
                );
            }
            (name, lease) => panic!("{name}: {lease:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn j09_many_cold_starts_wait_for_each_other_and_their_time_counts_from_their_own() {
    let settings = PoolSettings::default()
        .with_max_starting(NonZeroUsize::new(4).expect("four"))
        .with_start_timeout_local(secs(1));
    let (pool, world) = pool_with(settings);
    let names: Vec<_> = (0..20).map(|n| format!("s{n}")).collect();
    for name in &names {
        world.plan(name, |plan| plan.start = millis(600));
    }
    world.plan("s3", |plan| plan.starts = [Connecting::fails()].into());
    world.plan("s7", |plan| {
        plan.starts = vec![Connecting::missing(); 2].into()
    });
    let configs: Vec<_> = names.iter().map(|name| server(name)).collect();
    let session = pool.session("s");

    let acquired = session.acquire_all(&configs).await;

    assert_eq!(world.most_connecting(), 4);
    let failed: Vec<_> = acquired
        .iter()
        .filter(|(_, lease)| lease.is_err())
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    session
        .acquire(&configs[3])
        .await
        .expect("the flaky one comes at once");
    let missing = session
        .acquire(&configs[7])
        .await
        .expect_err("it is missing still");
    assert!(missing.is_permanent());
    assert_eq!(world.starts("s7").len(), 2, "once for each who asked");
}

#[tokio::test(start_paused = true)]
async fn j10_a_server_that_hangs_blocks_neither_acquire_nor_restart_nor_drain() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.starts = vec![Connecting::Hangs; 9].into());
    let session = pool.session("s");
    let config = server("a");

    let ((acquire, acquired), (restart, _), (drain, report), late) = join!(
        timed(session.acquire(&config)),
        timed(async {
            sleep(secs(1)).await;
            pool.restart("a", None).await
        }),
        timed(async {
            sleep(secs(2)).await;
            pool.drain_all(secs(2)).await
        }),
        async {
            sleep(secs(2) + MOMENT).await;
            session.acquire(&config).await
        },
    );

    assert_eq!(refusal(acquired), Class::Rejected);
    assert!(
        acquire <= secs(2) && restart <= secs(3),
        "{acquire:?} {restart:?}"
    );
    assert!(drain <= secs(4), "{drain:?}");
    assert_eq!(report.forced, []);
    let late = late.expect_err("too late");
    assert_eq!(late.find_source::<Refused>(), Some(&Refused::Draining));
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn l06_calls_made_while_the_server_starts_wait_for_it() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = millis(500));
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");

    let (took, calls) = timed(join_all((0..10).map(|_| call(&lease)))).await;

    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert!(took >= millis(500) && took < millis(510), "{took:?}");
    assert_eq!(world.starts("a").len(), 1);
    assert_eq!(world.last("a").executed(), 10);
}

#[tokio::test(start_paused = true)]
async fn r01_bad_servers_neither_hold_up_nor_take_down_the_good_one() {
    let settings = PoolSettings::default().with_start_timeout_local(secs(1));
    let (pool, world) = pool_with(settings);
    world.plan("missing", |plan| {
        plan.starts = [Connecting::missing()].into()
    });
    world.plan("hangs", |plan| plan.starts = [Connecting::Hangs].into());
    world.plan("exits", |plan| plan.starts = [Connecting::fails()].into());
    let configs = ["fine", "missing", "hangs", "exits"].map(server);
    let session = pool.session("s");

    let ((whole, acquired), ()) = join!(timed(session.acquire_all(&configs)), async {
        sleep(millis(100)).await;
        let fine = session.lease(&configs[0]).expect("it is open");
        assert!(!fine.tools().tools.is_empty());
        let (took, called) = timed(call(&fine)).await;
        called.expect("it works");
        assert!(took <= MOMENT, "{took:?}");
    });

    assert!(whole <= secs(2), "{whole:?}");
    assert!(acquired[0].1.is_ok());
    for (name, lease) in &acquired[1..] {
        let failure = lease.as_ref().expect_err("it is bad");
        assert_eq!(failure.class(), Class::NotSent);
        assert!(failure.to_string().contains(&**name), "{failure}");
    }
    advance(MOMENT).await;
}
