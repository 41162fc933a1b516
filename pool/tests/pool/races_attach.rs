//! Races of sessions that come and go.

use futures::join;
use steadfast_classify::{Call as _, Class, Effect};
use steadfast_pool::{ServerConfig, Status};
use tokio::time::{sleep, timeout};

use crate::support::{
    MOMENT, call, entry, millis, pool, refusal, secs, server, settle, slow, spawn_call, status,
    tools, unpooled,
};

#[tokio::test(start_paused = true)]
async fn race_v21_2_closing_a_session_gives_up_its_own_seats_only() {
    let (pool, _world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let names: Vec<_> = (0..50).map(|n| format!("s{n}")).collect();
    let mut leases = Vec::new();
    for name in &names {
        leases.push(other.acquire(&server(name)).await.expect("it starts"));
    }
    leases.push(one.acquire(&server("s0")).await.expect("it is there"));
    leases.push(one.acquire(&server("s1")).await.expect("it is there"));

    one.close();

    assert!(names.iter().all(|name| entry(&pool, name).refs == 1));
}

#[tokio::test(start_paused = true)]
async fn race_v21_6_a_closed_session_sees_nothing_at_once_and_the_others_all() {
    let (pool, _world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let mine = one.acquire(&server("a")).await.expect("it starts");
    let theirs = other.acquire(&server("a")).await.expect("it is there");

    one.close();

    assert_eq!(refusal(one.lease(&server("a"))), Class::Rejected);
    assert_eq!(tools(&mine), [""; 0]);
    assert!(mine.prompts().prompts.is_empty() && mine.resources().resources.is_empty());
    assert_eq!(tools(&theirs), ["r", "w", "i"]);
}

#[tokio::test(start_paused = true)]
async fn race_v2_c4_whoever_comes_sees_the_tools_without_waiting() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let _first = session.acquire(&server("a")).await.expect("it starts");

    let second = session.lease(&server("a")).expect("it is open");

    assert_eq!(tools(&second), ["r", "w", "i"]);
}

#[tokio::test(start_paused = true)]
async fn race_v2_c7_trust_is_each_sessions_own() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let trusting = ServerConfig::stdio("a", "fake").arg("0").trust(true);
    let trusting = trusting.build().expect("a good configuration");

    let trusting = session.acquire(&trusting).await.expect("it starts");
    let wary = session.acquire(&server("a")).await.expect("it is there");

    assert_eq!(entry(&pool, "a").refs, 2, "one connection");
    assert_eq!(trusting.tool("r").effect(), Effect::ReadOnly);
    assert_eq!(wary.tool("r").effect(), Effect::NonIdempotent);
}

#[tokio::test(start_paused = true)]
async fn race_c4_acquire_while_the_old_connection_ends_gets_a_new_one() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(31)).await;
    assert_eq!(status(&pool, "a"), Some(Status::Closing));

    let lease = session.acquire(&server("a")).await.expect("it comes back");

    call(&lease).await.expect("it works");
    assert_eq!(world.last("a").executed(), 1);
    assert_eq!(world.starts("a").len(), 2);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn race_w5_a_lease_finds_the_next_connection_by_itself() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.last("a").crash();
    settle().await;

    call(&lease).await.expect("it is made anew");

    assert_eq!(world.links("a").len(), 2);
    assert_eq!(entry(&pool, "a").refs, 1);
}

#[tokio::test(start_paused = true)]
async fn race_w61_dropping_a_session_releases_leases_that_are_still_held() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let clone = lease.clone();

    drop(session);

    assert_eq!(entry(&pool, "a").refs, 0);
    assert_eq!(refusal(call(&clone).await), Class::Rejected);
    drop((lease, clone));
    assert_eq!(entry(&pool, "a").refs, 0, "given up once");
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w61_closing_a_session_cancels_its_calls_on_the_wire_and_no_others() {
    let (pool, world) = pool();
    let (one, other) = (pool.session("one"), pool.session("other"));
    let mine = one.acquire(&server("a")).await.expect("it starts");
    let theirs = other.acquire(&server("a")).await.expect("it is there");
    let cut = spawn_call(&mine, slow(&mine, 5_000));
    let left = spawn_call(&theirs, slow(&theirs, 5_000));
    settle().await;

    one.close();

    let cut = timeout(MOMENT, cut)
        .await
        .expect("at once")
        .expect("no panic");
    let failure = cut.expect_err("its session is closed");
    assert_eq!(failure.class(), Class::Cancelled);
    assert!(failure.may_have_run(), "it was sent");
    left.await.expect("no panic").expect("it goes on");
    assert_eq!(world.last("a").cancelled(), 1);
}

#[tokio::test(start_paused = true)]
async fn race_w77_closing_the_session_ends_the_start_of_its_own_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let session = pool.session("s");
    let config = unpooled("a");

    let (acquired, ()) = join!(session.acquire(&config), async {
        sleep(secs(1)).await;
        session.close();
    });

    assert_eq!(refusal(acquired), Class::Rejected);
    settle().await;
    assert_eq!(world.alive(), 0);
    sleep(secs(10)).await;
    assert_eq!(world.links("a").len(), 0, "it never came to life");
    assert_eq!(status(&pool, "a"), None);
}

#[tokio::test(start_paused = true)]
async fn race_w81_an_unpooled_server_is_seen_through_the_sessions_filter_and_trust() {
    let (pool, _world) = pool();
    let config = ServerConfig::http("a", "http://localhost/mcp");
    let config = config.trust(true).exclude_tools(["w", "ask"]);
    let config = config.build().expect("a good configuration");

    let session = pool.session("s");
    let lease = session.acquire(&config).await.expect("it starts");

    assert_eq!(tools(&lease), ["r", "i"]);
    assert_eq!(lease.prompts().prompts.len(), 1);
    assert_eq!(lease.tool("r").effect(), Effect::ReadOnly);
    assert_eq!(refusal(call(&lease).await), Class::Rejected);
}

#[tokio::test(start_paused = true)]
async fn race_w90_w111_closing_one_session_in_a_shared_start_disturbs_nobody_else() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let (one, other) = (pool.session("one"), pool.session("other"));
    let config = server("a");

    let (mine, theirs, ()) = join!(one.acquire(&config), other.acquire(&config), async {
        sleep(secs(1)).await;
        one.close();
    });

    assert_eq!(refusal(mine), Class::Rejected);
    let theirs = theirs.expect("it started");
    assert_eq!(world.starts("a").len(), 1);
    assert_eq!(entry(&pool, "a").refs, 1);
    drop(theirs);
    assert_eq!(entry(&pool, "a").refs, 0);
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w94_w115_closing_a_session_ends_all_its_acquires_at_once_and_for_good() {
    let (pool, world) = pool();
    world.plan("hangs", |plan| plan.start = secs(20));
    let session = pool.session("s");
    let configs = [server("fine"), server("hangs")];

    let (acquired, ()) = join!(session.acquire_all(&configs), async {
        sleep(secs(1)).await;
        session.close();
    });

    let mut acquired = acquired.into_iter();
    let (name, fine) = acquired.next().expect("two results");
    assert_eq!(&*name, "fine");
    let fine = fine.expect("it was up before");
    assert_eq!(refusal(call(&fine).await), Class::Rejected);
    let (_, hangs) = acquired.next().expect("two results");
    assert_eq!(refusal(hangs), Class::Rejected);
    assert_eq!(
        refusal(session.acquire(&server("fine")).await),
        Class::Rejected
    );
    settle().await;
    assert_eq!(world.alive(), 1, "the fine one, in its grace");
}

#[tokio::test(start_paused = true)]
async fn race_w120_acquire_after_a_crash_gets_a_new_connection_under_the_next_index() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let _held = session.acquire(&server("a")).await.expect("it starts");
    assert_eq!(entry(&pool, "a").entry_index, Some(0));
    world.last("a").crash();

    // Not even a moment later.
    let lease = session.acquire(&server("a")).await;

    settle().await;
    let lease = match lease {
        Ok(lease) => lease,
        Err(_) => session
            .acquire(&server("a"))
            .await
            .expect("it is made anew"),
    };
    call(&lease).await.expect("it works");
    assert_eq!(world.links("a").len(), 2);
    assert_eq!(entry(&pool, "a").entry_index, Some(1));
}

#[tokio::test(start_paused = true)]
async fn race_w125_acquire_between_a_loss_and_its_cleanup_waits_for_the_next_connection() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let _held = session.acquire(&server("a")).await.expect("it starts");
    world.last("a").crash();
    settle().await;
    assert_eq!(status(&pool, "a"), Some(Status::Closing));

    let lease = session
        .acquire(&server("a"))
        .await
        .expect("no error surfaces");

    call(&lease).await.expect("it works");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn race_w125b_the_end_of_an_old_connection_does_not_touch_the_new_one() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    let old = session.acquire(&server("a")).await.expect("it starts");
    pool.retire("a");
    settle().await;

    let lease = session.acquire(&server("a")).await.expect("a new one");
    drop(old);
    sleep(secs(120)).await;

    assert_eq!(entry(&pool, "a").refs, 1);
    assert_eq!(world.links("a").len(), 2);
    assert!(world.last("a").is_alive());
    call(&lease).await.expect("it works");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn race_w131_a_loss_in_the_grace_leaves_no_timer_behind() {
    let (pool, world) = pool();
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(20)).await;
    world.last("a").crash();
    settle().await;
    assert_ne!(status(&pool, "a"), Some(Status::Connected));

    let lease = session
        .acquire(&server("a"))
        .await
        .expect("it is made anew");
    sleep(secs(600)).await;

    assert_eq!(world.links("a").len(), 2);
    call(&lease).await.expect("it was left alone");
}

#[tokio::test(start_paused = true)]
async fn race_wr1_an_entry_that_somebody_holds_outlives_its_idle_allowance() {
    let (pool, world) = pool();
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(20)).await;

    let _lease = session.acquire(&server("a")).await.expect("it is there");
    sleep(secs(3600)).await;

    assert_eq!(world.links("a").len(), 1);
    assert!(world.last("a").is_alive());
}

#[tokio::test(start_paused = true)]
async fn race_w2_r20_a_siblings_loss_does_not_show_on_another_key() {
    use crate::support::keyed;

    let (pool, world) = pool();
    let session = pool.session("s");
    let _x = session.acquire(&keyed("a", "x")).await.expect("it starts");
    let y = session.acquire(&keyed("a", "y")).await.expect("it starts");

    world.links("a")[0].crash();
    sleep(millis(10)).await;

    let snapshot = pool.snapshot();
    let entries = &snapshot.servers["a"].entry_summary;
    assert_eq!(entries[0].status, Status::Idle);
    assert_eq!(entries[1].status, Status::Connected);
    call(&y).await.expect("it was not touched");
}
