//! Races of restarts, losses and ends.

use futures::{future::join_all, join};
use steadfast_classify::Class;
use steadfast_pool::{DetachReason, Lost, PoolEvent, PoolSettings, Refused, Status};
use tokio::{
    sync::broadcast::error::TryRecvError,
    time::{sleep, timeout},
};

use crate::support::{
    Connecting, Listing, MOMENT, call, entry, keyed, millis, pool, pool_with, refusal, secs,
    server, settle, slots, slow, spawn_call, status, timed, told, tools,
};

#[tokio::test(start_paused = true)]
async fn race_v21_3_v21_7_one_of_several_entries_is_restarted_by_an_index_that_stays() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let _x = session.acquire(&keyed("a", "x")).await.expect("it starts");
    let _y = session.acquire(&keyed("a", "y")).await.expect("it starts");

    let restarted = pool.restart("a", Some(1)).await;

    assert_eq!(restarted.len(), 1);
    assert_eq!(restarted[0].entry_index, Some(1));
    assert!(restarted[0].restarted);
    let closes: Vec<_> = world.links("a").iter().map(|link| link.closes()).collect();
    assert_eq!(closes, [0, 1, 0]);
    let indices = |pool: &steadfast_pool::Pool| {
        let entries = &pool.snapshot().servers["a"].entry_summary;
        entries
            .iter()
            .map(|entry| entry.entry_index)
            .collect::<Vec<_>>()
    };
    assert_eq!(indices(&pool), [Some(0), Some(1)]);
    assert!(pool.restart("a", Some(7)).await.is_empty());
    assert!(pool.restart("unknown", None).await.is_empty());

    world.links("a")[0].crash();
    let _x = session.acquire(&keyed("a", "x")).await;
    settle().await;
    let _x = session
        .acquire(&keyed("a", "x"))
        .await
        .expect("it is made anew");
    assert_eq!(indices(&pool), [Some(1), Some(2)], "0 is never used again");
}

#[tokio::test(start_paused = true)]
async fn race_v21_5_a_call_in_flight_ends_with_its_connection_and_is_not_replayed() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    let sent = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;
    world.plan("a", |plan| plan.stuck = true);
    let queued = spawn_call(&lease, slow(&lease, 60_000));
    settle().await;

    world.last("a").crash();

    let sent = timeout(MOMENT, sent)
        .await
        .expect("at once")
        .expect("no panic");
    assert_eq!(refusal(sent), Class::Unknown);
    let queued = timeout(MOMENT, queued)
        .await
        .expect("at once")
        .expect("no panic");
    assert_eq!(refusal(queued), Class::NotSent);
    sleep(secs(60)).await;
    assert_eq!(world.links("a").len(), 1, "nothing runs by itself");
    assert_eq!(world.last("a").executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn race_c3_a_failed_restart_can_be_followed_by_a_good_one() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::fails(); 2].into()
    });

    for _ in 0..2 {
        let restarted = pool.restart("a", None).await;
        assert!(!restarted[0].restarted);
        assert_eq!(world.alive(), 0);
    }

    let (took, restarted) = timed(pool.restart("a", None)).await;
    assert!(restarted[0].restarted);
    assert!(took <= MOMENT, "whatever pause is due: {took:?}");
    assert_eq!(entry(&pool, "a").restarts, 3);
    call(&lease).await.expect("it works");
}

#[tokio::test(start_paused = true)]
async fn race_wr3_w40_every_session_sees_the_tools_of_the_restarted_server() {
    let (pool, world) = pool();
    let sessions: Vec<_> = (0..3).map(|n| pool.session(n.to_string())).collect();
    let config = server("a");
    let leases = join_all(sessions.iter().map(|session| session.acquire(&config))).await;
    world.plan("a", |plan| {
        plan.lists = [Listing::Tools(vec!["new"])].into()
    });

    assert!(pool.restart("a", None).await[0].restarted);

    for lease in leases {
        let lease = lease.expect("it started");
        assert_eq!(tools(&lease), ["new"]);
        call(&lease).await.expect("the lease is the same");
    }
}

#[tokio::test(start_paused = true)]
async fn race_w4_w31_w85_the_idle_deadline_waits_for_a_restart_and_begins_anew_after_it() {
    let settings = PoolSettings::default().with_start_timeout_local(secs(600));
    let (pool, world) = pool_with(settings);
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(20)).await;
    world.plan("a", |plan| plan.start = secs(400));

    let restarted = pool.restart("a", None).await;

    assert!(restarted[0].restarted);
    assert_eq!(status(&pool, "a"), Some(Status::Connected));
    assert_eq!(entry(&pool, "a").closes_in, Some(secs(30)));
    sleep(secs(31)).await;
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w44_a_restart_that_hangs_ends_at_its_limit() {
    let (pool, world) = pool();
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| plan.starts = [Connecting::Hangs].into());

    let (took, restarted) = timed(pool.restart("a", None)).await;

    assert!(!restarted[0].restarted);
    assert!(took <= secs(31), "{took:?}");
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w34_w68_a_drain_ends_restarts_and_lets_none_begin() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.start = secs(3));
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    let (during, report, after) = join!(
        pool.restart("a", None),
        async {
            sleep(secs(1)).await;
            pool.drain_all(secs(10)).await
        },
        async {
            sleep(secs(2)).await;
            pool.restart("a", None).await
        }
    );
    drop(lease);
    let idle = pool.restart("a", None).await;

    for restart in [&during[0], &after[0], &idle[0]] {
        assert!(!restart.restarted);
        let reason = restart.reason.as_ref().expect("it says why");
        assert_eq!(reason.find_source::<Refused>(), Some(&Refused::Draining));
    }
    assert_eq!(report.forced, []);
    assert_eq!(
        world.starts("a").len(),
        2,
        "the first, and the one called off"
    );
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w45_w52_restarts_at_once_are_one_restart() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close = secs(1));
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| plan.start = secs(3));

    let (one, other, late) = join!(pool.restart("a", None), pool.restart("a", None), async {
        sleep(secs(2)).await;
        pool.restart("a", None).await
    });

    assert!(
        [&one, &other, &late]
            .iter()
            .all(|restarts| restarts[0].restarted)
    );
    assert_eq!(world.starts("a").len(), 2);
    assert_eq!(entry(&pool, "a").restarts, 1);
    assert_eq!(entry(&pool, "a").entry_index, Some(0));
}

#[tokio::test(start_paused = true)]
async fn race_w3_w32_w37_however_a_connection_ends_it_is_closed_once() {
    let (pool, world) = pool_with(PoolSettings::default().with_grace(secs(1)));
    let session = pool.session("s");
    let names = [
        "lost", "restart", "failed", "idle", "retired", "off", "drained",
    ];
    world.plan("off", |plan| plan.lists = [Listing::Hangs].into());
    let mut leases = Vec::new();
    for name in names.into_iter().filter(|name| *name != "off") {
        leases.push(session.acquire(&server(name)).await.expect("it starts"));
    }

    world.last("lost").crash();
    pool.restart("restart", None).await;
    world.plan("failed", |plan| plan.starts = [Connecting::fails()].into());
    pool.restart("failed", None).await;
    let idle = leases.remove(3);
    assert_eq!(&**idle.server(), "idle");
    drop(idle);
    pool.retire("retired");
    assert!(
        timeout(secs(1), session.acquire(&server("off")))
            .await
            .is_err()
    );
    sleep(secs(2)).await;
    pool.drain_all(secs(10)).await;

    for name in names {
        assert_eq!(world.links(name)[0].closes(), 1, "{name}");
    }
    assert_eq!(world.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn race_w122_w123_w127_a_loss_takes_everything_with_it() {
    let (pool, world) = pool_with(slots(2));
    let mut events = pool.events();
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    world.last("a").crash();
    settle().await;

    let entry = entry(&pool, "a");
    assert_eq!(entry.status, Status::Idle);
    assert_eq!((entry.pid, entry.closes_in), (None, None));
    assert_eq!(pool.snapshot().total, 0);
    assert_eq!(pool.slots().held.len(), 0);
    assert_eq!(world.last("a").closes(), 1);
    let order: Vec<_> = told(&mut events).iter().map(kind).collect();
    assert_eq!(order, ["connected", "failed", "detached", "closed"]);
}

#[tokio::test(start_paused = true)]
async fn race_w133a_the_cause_of_a_loss_is_told_wherever_it_matters() {
    let (pool, world) = pool();
    let mut events = pool.events();
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");
    world.plan("a", |plan| {
        plan.starts = vec![Connecting::fails(); 9].into()
    });
    let mut lost = Lost::new("the server closed its output");
    lost.stderr = Some("out of memory".into());

    world.last("a").lose(lost);
    settle().await;

    let last_error = entry(&pool, "a").last_error.expect("it was lost");
    assert!(last_error.contains("out of memory"), "{last_error}");
    let failed = told(&mut events).into_iter().find_map(|event| match event {
        PoolEvent::Failed { lost, .. } => Some(lost.to_string()),
        _ => None,
    });
    assert!(failed.is_some_and(|failed| failed.contains("out of memory")));
    // The next start fails at once; after that there is a pause, which says why.
    assert_eq!(refusal(call(&lease).await), Class::NotSent);
    let paused = call(&lease).await.expect_err("not yet");
    assert!(paused.to_string().contains("it ended at once"), "{paused}");
    assert_eq!(paused.retry_in(), Some(secs(5)));
}

#[tokio::test(start_paused = true)]
async fn race_w134_an_end_that_cannot_be_proven_is_not_called_one() {
    let (pool, world) = pool();
    let mut events = pool.events();
    world.plan("a", |plan| plan.close_hangs = true);
    let session = pool.session("s");
    let lease = session.acquire(&server("a")).await.expect("it starts");

    world.last("a").crash();
    let (took, called) = timed(call(&lease)).await;

    drop(called);
    assert!(
        took <= secs(8),
        "a hung close blocks nobody for ever: {took:?}"
    );
    sleep(secs(8)).await;
    let closed = told(&mut events).into_iter().find_map(|event| match event {
        PoolEvent::Closed { closed, .. } => Some(closed),
        _ => None,
    });
    let closed = closed.expect("it was given up");
    assert_eq!((closed.killed, closed.survivors), (true, None));
    call(&lease).await.expect("there is a new one");
}

#[tokio::test(start_paused = true)]
async fn race_w134_a_close_that_hangs_is_killed_before_the_next_connection_begins() {
    let (pool, world) = pool();
    world.plan("a", |plan| plan.close_hangs = true);
    let session = pool.session("s");
    let _lease = session.acquire(&server("a")).await.expect("it starts");

    let restarted = pool.restart("a", None).await;

    assert!(restarted[0].restarted);
    assert!(world.links("a")[0].was_killed());
    world.check();
}

#[tokio::test(start_paused = true)]
async fn race_w70_r23_t2_a_listener_that_does_not_listen_stops_nobody() {
    let (pool, world) = pool_with(PoolSettings::default().with_grace(millis(0)));
    let mut deaf = pool.events();
    let mut keen = pool.events();
    let session = pool.session("s");
    let mut heard = 0;

    for _ in 0..500 {
        drop(session.acquire(&server("a")).await.expect("it starts"));
        settle().await;
        heard += told(&mut keen).len();
    }

    assert_eq!(world.links("a").len(), 500);
    assert_eq!(heard, 1_500, "each hears each event once");
    assert!(matches!(deaf.try_recv(), Err(TryRecvError::Lagged(_))));
}

#[tokio::test(start_paused = true)]
async fn race_w4_a_restart_beats_the_idle_end_of_what_a_session_holds() {
    let (pool, world) = pool();
    let mut events = pool.events();
    world.plan("a", |plan| plan.close = secs(3));
    let session = pool.session("s");
    drop(session.acquire(&server("a")).await.expect("it starts"));
    sleep(secs(30) + MOMENT).await;
    let lease = session.lease(&server("a")).expect("it is open");

    let restarted = pool.restart("a", None).await;

    assert!(restarted[0].restarted);
    call(&lease).await.expect("it works");
    let reasons: Vec<_> = told(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            PoolEvent::Detached { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [DetachReason::Idle], "it was being closed already");
}

fn kind(event: &PoolEvent) -> &'static str {
    match event {
        PoolEvent::Connected { .. } => "connected",
        PoolEvent::StartFailed { .. } => "start failed",
        PoolEvent::Failed { .. } => "failed",
        PoolEvent::Detached { .. } => "detached",
        PoolEvent::Closed { .. } => "closed",
        _ => "other",
    }
}
