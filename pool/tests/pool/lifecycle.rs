//! Grace, idle allowance, and coming back.

use steadfast_pool::Status;
use tokio::time::{advance, sleep};

use crate::support::{call, entry, millis, pool, secs, server, settle, status};

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
