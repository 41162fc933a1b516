//! How long who waits for what, and how many at once.

use std::num::{NonZeroU32, NonZeroUsize};

use futures::{future::join_all, join};
use steadfast_classify::{Call as _, Class, Flight, Stage};
use steadfast_pool::{Keepalive, PoolEvent, PoolSettings, ServerConfig, SlotMode, Status};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use crate::support::{
    Connecting, MOMENT, call, entry, millis, pool, pool_with, refusal, secs, server, settle, slow,
    spawn_call, status, timed, told,
};

fn narrow(calls: u32) -> ServerConfig {
    let calls = NonZeroU32::new(calls).expect("not zero");
    let config = ServerConfig::stdio("a", "fake").max_in_flight(calls);
    config.build().expect("a good configuration")
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_limit_wait_unsent() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&narrow(2)).await.expect("it starts");
    let _running: Vec<_> = (0..2)
        .map(|_| spawn_call(&lease, slow(&lease, 1_000)))
        .collect();
    settle().await;
    let flight = Flight::new();
    let mut third = lease.tool("w");
    third
        .context_mut()
        .expect("it has one")
        .set_flight(flight.clone());

    let third = spawn_call(&lease, third);
    sleep(millis(500)).await;

    assert_eq!(world.last("a").executed(), 2);
    assert_eq!(flight.stage().0, Stage::Queued, "it can be taken back");
    third.await.expect("no panic").expect("it has its turn");
    assert_eq!(world.last("a").executed(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_who_holds_a_server_says_how_many_calls_may_run() {
    let (pool, world) = pool();
    let session = pool.session("s");
    for (limit, want) in [(2, 2), (1, 1)] {
        let lease = session.acquire(&narrow(limit)).await.expect("it starts");
        let second = session.acquire(&narrow(9)).await.expect("it is there");
        let _calls: Vec<_> = (0..5)
            .map(|_| spawn_call(&second, slow(&second, 1_000)))
            .collect();
        settle().await;
        assert_eq!(world.last("a").executed(), want);
        drop((lease, second));
        sleep(secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn http_has_a_limit_by_default_and_programs_have_none() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let http = crate::support::unpooled("http");
    for (config, want) in [(http, 16), (server("program"), 100)] {
        let lease = session.acquire(&config).await.expect("it starts");
        let _calls: Vec<_> = (0..100)
            .map(|_| spawn_call(&lease, slow(&lease, 1_000)))
            .collect();
        settle().await;
        assert_eq!(world.last(config.name()).executed(), want, "{config:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waited_for_a_place_does_not_go_to_a_dead_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let lease = session.acquire(&narrow(1)).await.expect("it starts");
    let first = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;
    let waiting = spawn_call(&lease, slow(&lease, 0));
    settle().await;

    world.last("a").crash();

    assert_eq!(refusal(first.await.expect("no panic")), Class::Unknown);
    waiting
        .await
        .expect("no panic")
        .expect("on the next connection");
    assert_eq!(world.links("a")[0].executed(), 1);
    assert_eq!(world.links("a")[1].executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_says_how_long_a_start_may_take_before_it_waits_for_a_place() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(20));
    let session = pool.session("s");
    let lease = session.lease(&narrow(1)).expect("it is open");
    let flights = [Flight::new(), Flight::new()];
    let calls: Vec<_> = flights
        .iter()
        .map(|flight| {
            let mut call = lease.tool("w");
            call.context_mut()
                .expect("it has one")
                .set_flight(flight.clone());
            spawn_call(&lease, call)
        })
        .collect();
    settle().await;

    assert!(
        flights
            .iter()
            .all(|flight| flight.start_limit() == Some(secs(30)))
    );
    assert!(
        join_all(calls)
            .await
            .into_iter()
            .all(|call| call.is_ok_and(|call| call.is_ok()))
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_turn_to_start_costs_no_start_time() {
    let settings = PoolSettings::default()
        .with_max_starting(NonZeroUsize::MIN)
        .with_start_timeout_local(secs(4));
    let (pool, world) = pool_with(settings);
    let configs: Vec<_> = (0..8).map(|n| server(&n.to_string())).collect();
    for config in &configs {
        world.plan(config.name(), |plan| plan.start = secs(3));
    }
    // The one has to see to the starts, the other only waits for them.
    let (one, other) = (pool.session("one"), pool.session("other"));

    let (took, (mine, theirs)) =
        timed(async { join!(one.acquire_all(&configs), other.acquire_all(&configs)) }).await;

    for (name, lease) in mine.iter().chain(&theirs) {
        assert!(lease.is_ok(), "{name}: {lease:?}");
    }
    assert_eq!(took, secs(24));
}

#[tokio::test(start_paused = true)]
async fn each_waiter_has_a_bound_of_its_own() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());
    let limited = |limit| {
        let config = ServerConfig::stdio("a", "fake").discovery_timeout(secs(limit));
        config.build().expect("a good configuration")
    };
    let session = pool.session("s");
    let (long, short) = (limited(20), limited(2));

    let ((first, one), (second, other)) = join!(timed(session.acquire(&long)), async {
        sleep(secs(5)).await;
        timed(session.acquire(&short)).await
    });

    assert_eq!(
        (refusal(one), refusal(other)),
        (Class::NotSent, Class::NotSent)
    );
    assert!(first >= secs(20) && first <= secs(21), "{first:?}");
    assert_eq!(second, secs(2), "counted from when it came");
}

#[tokio::test(start_paused = true)]
async fn an_acquire_waits_for_a_short_pause_and_a_call_for_none() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::fails(); 2].into()
    });
    assert_eq!(refusal(call(&lease).await), Class::NotSent);
    assert_eq!(refusal(call(&lease).await), Class::NotSent);

    let failure = call(&lease).await.expect_err("there is a pause");
    assert_eq!(
        (failure.class(), failure.retry_in()),
        (Class::NotSent, Some(secs(5)))
    );
    assert_eq!(world.starts("a").len(), 2);
    let (took, ready) = timed(lease.ready()).await;
    ready.expect("it waited for the pause");
    assert_eq!(took, secs(5));
}

#[tokio::test(start_paused = true)]
async fn an_acquire_that_has_less_time_than_a_pause_takes_says_when_to_come_back() {
    let settings = PoolSettings::default().with_start_timeout_local(secs(3));
    let (pool, world) = pool_with(settings);
    let session = pool.session("s");
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::fails(); 2].into()
    });
    for _ in 0..2 {
        assert_eq!(refusal(session.acquire(&server("a")).await), Class::NotSent);
    }

    let (took, failure) = timed(session.acquire(&server("a"))).await;

    assert_eq!(took, secs(0), "it does not wait in vain");
    let failure = failure.expect_err("there is a pause");
    assert_eq!(failure.retry_in(), Some(secs(5)));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_brings_no_pause() {
    let (pool, world) = pool();
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::missing(); 9].into()
    });
    let session = pool.session("s");

    for n in 1..=9 {
        let (took, acquired) = timed(session.acquire(&server("a"))).await;
        assert!(took <= MOMENT, "{took:?}");
        let failure = acquired.expect_err("it is missing");
        assert!(failure.is_permanent());
        assert_eq!(world.starts("a").len(), n);
    }
    session
        .acquire(&server("a"))
        .await
        .expect("somebody installed it");
}

#[tokio::test(start_paused = true)]
async fn a_refused_slot_can_be_had_as_soon_as_one_is_free() {
    let settings = PoolSettings::default().with_slots(SlotMode::Enforce(1));
    let (pool, world) = pool_with(settings.with_grace(secs(0)));
    let session = pool.session("s");
    let a = session.acquire(&server("a")).await.expect("it starts");
    let b = session.lease(&server("b")).expect("it is open");
    for _ in 0..9 {
        assert_eq!(refusal(call(&b).await), Class::Rejected);
    }
    assert_eq!(pool.slots().refused.len(), 1);

    drop(a);
    settle().await;

    call(&b).await.expect("it is free");
    assert_eq!(world.starts("b").len(), 1, "a refusal is no start");
    assert!(pool.slots().refused.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_retired_server_may_finish_its_calls_and_comes_back_as_another_entry() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let config = server("a");
    let old = session.acquire(&config).await.expect("it starts");
    let running = spawn_call(&old, slow(&old, 5_000));
    settle().await;

    pool.retire("a");
    pool.retire("unknown");

    assert_eq!(refusal(call(&old).await), Class::Rejected);
    let (took, new) = timed(session.acquire(&config)).await;
    assert!(took > secs(4), "the key is taken: {took:?}");
    running.await.expect("no panic").expect("it had the time");
    let new = new.expect("it comes back");
    call(&new).await.expect("it works");
    assert_eq!(entry(&pool, "a").entry_index, Some(1));
    assert_eq!(entry(&pool, "a").refs, 1);
    drop(old);
    assert_eq!(entry(&pool, "a").refs, 1, "it had none any more");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_retired_server_is_not_kept_by_its_calls_for_ever() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let running = spawn_call(&lease, slow(&lease, 600_000));
    settle().await;

    pool.retire("a");

    let (took, called) = timed(running).await;
    assert_eq!(refusal(called.expect("no panic")), Class::Unknown);
    assert!(took <= secs(30), "{took:?}");
    settle().await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_pinged_unless_it_is_wanted() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.mute = true);
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    sleep(secs(3600)).await;

    assert_eq!(world.last("a").pings(), 0);
    assert_eq!(status(&pool, "a"), Some(Status::Connected));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_works_is_not_pinged_and_one_that_is_silent_is_lost() {
    let keepalive = Keepalive::new(secs(10)).with_answer(secs(5));
    let (pool, world) = pool_with(PoolSettings::default().with_keepalive(keepalive));
    let mut events = pool.events();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    sleep(secs(25)).await;
    assert_eq!(world.last("a").pings(), 2);

    world.plan("a", |plan| plan.mute = true);
    let busy = lease.clone().oneshot(slow(&lease, 120_000));
    timeout(secs(121), busy)
        .await
        .expect("in time")
        .expect("left alone");
    assert_eq!(world.last("a").pings(), 2);

    // Nor is it lost for a ping that a call overtook.
    sleep(secs(6)).await;
    assert_eq!(world.last("a").pings(), 3);
    let busy = lease.clone().oneshot(slow(&lease, 20_000));
    busy.await.expect("left alone");
    assert_eq!(status(&pool, "a"), Some(Status::Connected));

    sleep(secs(16) + MOMENT).await;
    assert_eq!(status(&pool, "a"), Some(Status::Idle));
    let lost = told(&mut events).into_iter().find_map(|event| match event {
        PoolEvent::Failed { lost, .. } => Some(lost.to_string()),
        _ => None,
    });
    assert_eq!(lost.as_deref(), Some("the server did not answer a ping"));
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let zero = secs(0);
    let sensible = PoolSettings::default;
    for (settings, field) in [
        (sensible().with_max_idle(zero), "max_idle"),
        (
            sensible().with_start_timeout_local(zero),
            "start_timeout_local",
        ),
        (
            sensible().with_start_timeout_remote(zero),
            "start_timeout_remote",
        ),
        (sensible().with_slots(SlotMode::Enforce(0)), "slots"),
        (
            sensible().with_keepalive(Keepalive::new(zero)),
            "keepalive.every",
        ),
        (
            sensible().with_keepalive(Keepalive::new(secs(1)).with_answer(zero)),
            "keepalive.answer",
        ),
    ] {
        let error = steadfast_pool::Pool::new(settings).expect_err(field);
        assert_eq!(error.field(), field);
    }
}

#[tokio::test(start_paused = true)]
async fn durations_without_end_are_no_panic() {
    let never = std::time::Duration::MAX;
    let settings = PoolSettings::default()
        .with_grace(never)
        .with_max_idle(never);
    let (pool, world) = pool_with(settings.with_start_timeout_local(never));
    let session = pool.session("s");

    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(60 * 60 * 24 * 365)).await;

    assert!(world.last("a").is_alive());
    pool.retire("a");
    settle().await;
    assert_eq!(world.alive(), 0);
}
