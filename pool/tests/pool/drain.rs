//! The end of a pool.

use futures::join;
use steadfast_classify::Class;
use steadfast_pool::{PoolEvent, Refused, Status};
use tokio::{runtime, time::sleep};

use crate::support::{
    Connecting, MOMENT, call, entry, millis, pool, refusal, secs, server, settle, slow, spawn_call,
    status, timed, told,
};

#[tokio::test(start_paused = true)]
async fn calls_may_finish_in_the_first_half_and_nothing_new_is_accepted() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let running = spawn_call(&lease, slow(&lease, 3_000));
    settle().await;

    let ((took, report), ()) = join!(timed(pool.drain_all(secs(10))), async {
        settle().await;
        assert_eq!(status(&pool, "a"), Some(Status::Closing));
        let late = call(&lease).await.expect_err("not any more");
        assert_eq!(late.find_source::<Refused>(), Some(&Refused::Draining));
        assert!(!late.may_have_run());
        assert_eq!(refusal(session.lease(&server("b"))), Class::Rejected);
    });

    running.await.expect("no panic").expect("it had the time");
    assert_eq!((report.drained, report.forced.len()), (1, 0));
    assert!(
        took < secs(4),
        "it waits no longer than for the calls: {took:?}"
    );
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_that_run_longer_are_cut_off_at_half_time() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let running = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;

    let (took, report) = timed(pool.drain_all(secs(10))).await;

    assert_eq!(took, secs(5));
    assert_eq!(refusal(running.await.expect("no panic")), Class::Unknown);
    assert_eq!(report.drained, 1);
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_its_own_steps_had_to_kill_is_reported() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(60));
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    let (took, report) = timed(pool.drain_all(secs(10))).await;

    assert!(took < secs(10), "{took:?}");
    assert_eq!(report.drained, 0);
    assert_eq!(report.forced[0].entry_index, Some(0));
    assert_eq!(report.forced[0].survivors, Some(0), "it is proven dead");
    assert!(!world.killed_all());
}

#[tokio::test(start_paused = true)]
async fn race_c5_w73_a_start_that_is_under_way_is_called_off_at_once() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());
    let session = pool.session("s");
    let config = server("a");

    let (acquired, (took, report)) = join!(session.acquire(&config), async {
        sleep(secs(1)).await;
        timed(pool.drain_all(secs(10))).await
    });

    assert_eq!(refusal(acquired), Class::Rejected);
    assert!(took <= MOMENT, "{took:?}");
    assert_eq!((report.drained, report.forced.len()), (1, 0));
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_waits_for_its_turn_is_called_off_too() {
    use std::num::NonZeroUsize;

    let settings = steadfast_pool::PoolSettings::default().with_max_starting(NonZeroUsize::MIN);
    let (pool, world) = crate::support::pool_with(settings);
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());
    let session = pool.session("s");
    let configs = [server("a"), server("b")];

    let (acquired, report) = join!(session.acquire_all(&configs), async {
        sleep(secs(1)).await;
        pool.drain_all(secs(10)).await
    });

    assert!(
        acquired
            .into_iter()
            .all(|(_, lease)| refusal(lease) == Class::Rejected)
    );
    assert_eq!(report.drained, 2);
    assert_eq!(world.starts("b").len(), 0);
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_c1_w63_a_drain_that_its_caller_left_goes_on() {
    let (pool, world) = pool();
    let mut events = pool.events();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    let left = tokio::time::timeout(secs(1), pool.drain_all(secs(10))).await;

    assert!(left.is_err());
    sleep(secs(2) + MOMENT).await;
    assert_eq!(world.alive(), 0);
    let (took, report) = timed(pool.clone().drain_all(secs(10))).await;
    assert_eq!((took, report.drained), (secs(0), 1));
    let drained = told(&mut events).into_iter().filter(|event| {
        matches!(
            event,
            PoolEvent::Drained {
                drained: 1,
                forced: 0,
                ..
            }
        )
    });
    assert_eq!(drained.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn bounds_that_make_no_sense_are_no_panic() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close_hangs = true);
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    let (took, report) = timed(pool.drain_all(secs(0))).await;

    assert!(took <= millis(100), "{took:?}");
    assert_eq!(report.forced.len(), 1);
    assert_eq!(world.alive(), 0);
    let (other, _world) = crate::support::pool();
    other.drain_all(std::time::Duration::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_kills_everything_at_once() {
    let (pool, world) = pool();
    world.plan("starts", |plan| plan.starts = [Connecting::Hangs].into());
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let starting = session.lease(&server("starts")).expect("it is open");
    let starting = spawn_call(&starting, starting.tool("w"));
    let running = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;

    let clone = pool.clone();
    drop(pool);
    assert_eq!(world.alive(), 2, "there is another handle");
    drop(clone);

    assert!(!world.last("a").is_alive(), "before the drop returns");
    assert!(world.killed_all());
    settle().await;
    assert_eq!(world.alive(), 0);
    assert_eq!(refusal(running.await.expect("no panic")), Class::Unknown);
    assert_eq!(refusal(starting.await.expect("no panic")), Class::Rejected);
    assert_eq!(refusal(call(&lease).await), Class::Rejected);
    assert_eq!(
        refusal(session.acquire(&server("b")).await),
        Class::Rejected
    );
}

#[test]
fn dropping_the_last_handle_outside_of_a_runtime_kills_too() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let runtime = paused();
    let lease = runtime
        .block_on(session.acquire(&server("a")))
        .expect("it starts");

    drop(pool);

    assert_eq!(world.alive(), 0);
    drop((lease, session, runtime));
}

#[test]
fn a_connection_that_went_down_with_its_runtime_is_replaced_in_the_next() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = paused().block_on(async {
        let lease = session.acquire(&server("a")).await.expect("it starts");
        call(&lease).await.expect("it works");
        lease
    });

    assert_eq!(world.alive(), 0, "it ended with the runtime");
    assert_eq!(status(&pool, "a"), Some(Status::Idle));
    paused().block_on(async {
        call(&lease).await.expect("another one");
        assert_eq!(entry(&pool, "a").entry_index, Some(1));
        assert_eq!(pool.drain_all(secs(1)).await.drained, 1);
    });
}

#[test]
fn outside_of_a_runtime_nothing_panics() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    let runtime = paused();
    runtime.block_on(async {
        let _running = session.acquire(&server("b")).await.expect("it starts");
    });

    let failure = futures::executor::block_on(lease.ready()).expect_err("no runtime");
    assert!(failure.is_permanent(), "{failure}");
    let report = futures::executor::block_on(pool.drain_all(secs(1)));

    assert_eq!(
        report.forced.len(),
        1,
        "there is no time for anything kinder"
    );
    assert_eq!(world.alive(), 0);
}

fn paused() -> runtime::Runtime {
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}
