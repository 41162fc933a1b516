//! Defects of the pool that this one grew from, each shown there by a program.

use futures::join;
use steadfast_classify::Class;
use steadfast_pool::{SlotsFull, Status};
use tokio::time::{sleep, timeout};

use crate::support::{
    Connecting, Listing, call, entry, keyed, pool, pool_with, refusal, secs, server, settle, slots,
    status, timed, tools, unpooled,
};

#[tokio::test(start_paused = true)]
async fn defect_h1_a_slot_is_free_when_the_last_of_its_name_fails_to_start() {
    let (pool, world) = pool_with(slots(1).with_grace(secs(1)));
    let session = pool.session("s");
    let first = session.acquire(&keyed("a", "x")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.start = secs(5);
        plan.starts = [Connecting::fails()].into();
    });
    let second = keyed("a", "y");

    // The first goes while the second, of the same name, is being started.
    let (acquired, ()) = join!(session.acquire(&second), async {
        drop(first);
        sleep(secs(3)).await;
        assert_eq!(world.links("a")[0].closes(), 1);
        assert_eq!(pool.slots().held.len(), 1, "the second has it");
    });

    assert_eq!(refusal(acquired), Class::NotSent);
    assert_eq!(pool.slots().held.len(), 0);
    session
        .acquire(&server("b"))
        .await
        .expect("the slot is free");
}

#[tokio::test(start_paused = true)]
async fn defect_h2_an_entry_that_nobody_holds_has_a_deadline_from_the_start() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.list = secs(1));
    let session = pool.session("s");
    let config = server("a");
    let lease = session.lease(&config).expect("it is open");

    // The last seat goes while the start is waited for by a restart only.
    let (_, restarted) = join!(timeout(secs(2), lease.ready()), async {
        settle().await;
        session.close();
        pool.restart("a", None).await
    });

    assert!(restarted[0].restarted, "{restarted:?}");
    assert_eq!(entry(&pool, "a").refs, 0);
    assert!(entry(&pool, "a").closes_in.is_some());
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn defect_h2_a_restart_for_nobody_is_not_done_over_and_over() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(1));
    let session = pool.session("s");
    let config = unpooled("a");
    let lease = session.acquire(&config).await.expect("it starts");

    // Nobody else will ever come for it, so it is closed as soon as nobody holds it.
    let (restarted, ()) = join!(pool.restart("a", None), async {
        settle().await;
        drop(lease);
    });

    assert!(restarted[0].restarted);
    settle().await;
    assert_eq!(world.starts("a").len(), 2);
    assert_eq!(world.alive(), 0);
    assert!(pool.restart("a", None).await.is_empty(), "there is nothing");
    assert_eq!(world.starts("a").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn defect_h3_nothing_is_attached_to_a_session_closed_before_the_start_is_done() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let session = pool.session("s");
    let config = server("a");

    let (acquired, ()) = join!(session.acquire(&config), async {
        sleep(secs(1)).await;
        session.close();
    });

    assert_eq!(refusal(acquired), Class::Rejected);
    settle().await;
    assert_eq!(world.alive(), 0, "nobody waited for it any more");
    assert_eq!(status(&pool, "a"), None);
}

#[tokio::test(start_paused = true)]
async fn defect_h22_the_closed_one_of_two_joiners_is_not_attached() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");

    let (mine, theirs, ()) = join!(one.acquire(&config), other.acquire(&config), async {
        sleep(secs(1)).await;
        one.close();
    });

    assert_eq!(refusal(mine), Class::Rejected);
    assert!(theirs.is_ok());
    assert_eq!(entry(&pool, "a").refs, 1);
}

#[tokio::test(start_paused = true)]
async fn defect_h4_an_old_handle_gives_up_its_own_seat_only() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let first = session.acquire(&server("a")).await.expect("it starts");
    let second = session.acquire(&server("a")).await.expect("it is there");

    drop(first);
    sleep(secs(600)).await;

    assert_eq!(entry(&pool, "a").refs, 1);
    call(&second).await.expect("it is still there");
    assert_eq!(world.links("a").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn defect_h6_everybody_who_drains_waits_for_the_same_end() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    let ((one, first), (other, second)) = join!(
        timed(pool.drain_all(secs(10))),
        timed(pool.drain_all(secs(1)))
    );

    assert_eq!((one, other), (secs(3), secs(3)));
    assert_eq!(first, second);
    assert_eq!(first.drained, 1);
    assert_eq!(pool.drain_all(secs(10)).await, first, "and ever after");
}

#[tokio::test(start_paused = true)]
async fn defect_h7_h15_a_close_that_hangs_is_killed_and_said_so_and_its_slot_is_free() {
    let (pool, world) = pool_with(slots(4));
    world.plan("a", |plan| plan.close_hangs = true);
    let session = pool.session("s");
    let _a = session.acquire(&server("a")).await.expect("it starts");
    let _b = session.acquire(&server("b")).await.expect("it starts");

    let (took, report) = timed(pool.drain_all(secs(4))).await;

    assert!(took <= secs(4), "{took:?}");
    assert_eq!(report.drained, 1);
    assert_eq!(report.forced.len(), 1);
    assert_eq!(&*report.forced[0].server, "a");
    assert_eq!(world.alive(), 0);
    assert!(world.last("a").was_killed());
    assert_eq!(pool.slots().held.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn defect_h8_a_start_that_is_done_after_its_limit_belongs_to_nobody() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(35));
    let session = pool.session("s");

    let (took, acquired) = timed(session.acquire(&server("a"))).await;

    assert_eq!(refusal(acquired), Class::NotSent);
    assert!(took <= secs(31), "{took:?}");
    assert_eq!(world.alive(), 0);
    sleep(secs(60)).await;
    assert_eq!(world.links("a").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn defect_h10_a_restart_joins_the_start_that_is_under_way() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let session = pool.session("s");
    let config = server("a");

    let (acquired, restarted) = join!(session.acquire(&config), async {
        sleep(secs(1)).await;
        pool.restart("a", None).await
    });

    assert!(acquired.is_ok());
    assert!(restarted[0].restarted);
    assert_eq!(restarted[0].entry_index, Some(0));
    assert_eq!(world.starts("a").len(), 1);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn defect_h12_a_connection_that_died_while_it_was_listed_is_never_handed_out() {
    let (pool, world) = pool();
    world.plan("a", |plan| {
        plan.list = secs(1);
        plan.lists = [Listing::Dies, Listing::default()].into();
    });
    let session = pool.session("s");

    let acquired = session.acquire(&server("a")).await;

    let failure = acquired.expect_err("it is dead");
    assert_eq!(failure.class(), Class::NotSent);
    assert!(
        failure.to_string().contains("the server ended"),
        "{failure}"
    );
    assert_eq!(status(&pool, "a"), Some(Status::Idle));
    let lease = session.acquire(&server("a")).await.expect("another one");
    call(&lease).await.expect("it works");
}

#[tokio::test(start_paused = true)]
async fn defect_h12_a_connection_that_dies_while_its_list_hangs_is_given_up_at_once() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.lists = [Listing::Hangs].into());
    let session = pool.session("s");
    let config = server("a");

    let ((took, acquired), ()) = join!(timed(session.acquire(&config)), async {
        sleep(secs(1)).await;
        world.last("a").crash();
    });

    assert_eq!(refusal(acquired), Class::NotSent);
    assert!(took < secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn defect_h13_a_connection_that_died_in_a_restart_is_not_restarted() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.lists = [Listing::Dies, Listing::default()].into()
    });

    let restarted = pool.restart("a", None).await;

    assert!(!restarted[0].restarted);
    assert!(restarted[0].reason.is_some());
    call(&lease).await.expect("the next one is good");
}

#[tokio::test(start_paused = true)]
async fn defect_h16_a_failed_list_keeps_the_last_good_one_and_an_empty_one_does_not() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| plan.lists = [Listing::Fails].into());

    let restarted = pool.restart("a", None).await;

    assert!(!restarted[0].restarted, "its tools could not be listed");
    assert_eq!(tools(&lease), ["r", "w", "i"]);
    assert!(lease.tools().stale.is_some());
    world.plan("a", |plan| plan.lists = [Listing::Tools(vec![])].into());
    assert!(pool.restart("a", None).await[0].restarted);
    assert_eq!(tools(&lease), [""; 0]);
    assert!(lease.tools().stale.is_none());
}

#[tokio::test(start_paused = true)]
async fn defect_h17_a_retired_server_keeps_its_slot_until_it_is_gone() {
    let (pool, world) = pool_with(slots(1));
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    pool.retire("a");
    settle().await;

    assert_eq!(refusal(call(&lease).await), Class::Rejected);
    assert_eq!(
        refusal(session.acquire(&server("b")).await),
        Class::Rejected
    );
    sleep(secs(3)).await;
    session.acquire(&server("b")).await.expect("it is gone");
    assert_eq!(pool.slots().held.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn defect_h18_a_restart_asks_for_a_slot_where_it_has_none() {
    let (pool, world) = pool_with(slots(1));
    let session = pool.session("s");
    let _a = session.acquire(&server("a")).await.expect("it starts");
    world.last("a").crash();
    settle().await;
    let _b = session
        .acquire(&server("b"))
        .await
        .expect("the slot is free");

    let restarted = pool.restart("a", None).await;

    let reason = restarted[0].reason.as_ref().expect("no slot is free");
    assert!(reason.find_source::<SlotsFull>().is_some(), "{reason}");
    assert!(pool.restart("b", None).await[0].restarted, "it has one");
}

#[tokio::test(start_paused = true)]
async fn defect_h19_a_lease_needs_nobody_to_tell_it_of_a_loss() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.lease(&server("a")).expect("it is open");
    call(&lease).await.expect("it starts");
    world.last("a").crash();

    let failed = call(&lease).await;

    // Either it was in time to see the loss, or it says that it was not sent.
    if let Err(failure) = failed {
        assert_eq!(failure.class(), Class::NotSent);
    }
    settle().await;
    call(&lease).await.expect("there is another one");
}
