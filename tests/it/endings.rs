//! How a server is asked to end: its input first, and a signal only if that is not enough.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use steadfast::{
    Class, Pool, PoolSettings,
    pool::{Closed, PoolEvent, process::Grace},
};
use steadfast_tests::probe::EventKind;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, timeout},
};

use crate::{
    marked::Marked,
    support::{Stage, gone, ms, secs},
};

/// Long enough for a server to flush; what it did after a signal is seen by its file.
const GRACE: Grace = Grace::new(
    Duration::from_secs(3),
    Duration::from_secs(1),
    Duration::from_secs(1),
);

/// What a server that was released did before it ended.
struct Ending {
    closed: Closed,
    wrote: String,
    terms: usize,
    took: Duration,
}

#[tokio::test]
async fn i06_a_server_that_flushes_on_eof_has_the_time_and_gets_no_signal_stdio() {
    let ending = released(json!({"eof_delay_ms": 500})).await;

    assert_eq!((ending.wrote.as_str(), ending.terms), ("bye\n", 0));
    assert!(!ending.closed.killed);
    assert_eq!(ending.closed.survivors, Some(0));
    assert!(ending.took >= ms(500), "{:?}", ending.took);
    assert!(ending.took < GRACE.eof, "no longer than it needs");
}

#[tokio::test]
async fn i06_a_server_that_ignores_eof_is_told_by_sigterm_stdio() {
    let ending = released(json!({"ignore_eof": true})).await;

    assert_eq!((ending.wrote.as_str(), ending.terms), ("term\n", 1));
    assert!(!ending.closed.killed);
    assert_eq!(ending.closed.survivors, Some(0));
    assert!(ending.took >= GRACE.eof, "not before: {:?}", ending.took);
}

#[tokio::test]
async fn i06_a_server_that_ignores_both_is_killed_in_bounded_time_stdio() {
    let ending = released(json!({"ignore_eof": true, "ignore_sigterm": true})).await;

    assert_eq!((ending.wrote.as_str(), ending.terms), ("", 1));
    assert!(ending.closed.killed);
    assert_eq!(ending.closed.survivors, Some(0));
    assert!(ending.took >= GRACE.eof + GRACE.term, "{:?}", ending.took);
    assert!(ending.took < secs(8), "{:?}", ending.took);
}

#[tokio::test]
async fn a_start_whose_wrapper_dies_fails_soon_while_a_child_holds_its_output_stdio() {
    let stage = Stage::enter().await;
    let marked = Marked::new(&stage);
    let pool = stage.pool();
    let session = pool.session("a");
    let script = "echo 'no such module' >&2; sleep 300 & exit 7";
    let fields = json!({"command": "sh", "args": ["-c", script]});
    let config = stage.server_with(&json!({}), fields);

    // Its whole time to start is 30 s.
    let acquired = timeout(secs(5), session.acquire(&config)).await;

    let failure = acquired.expect("it is noticed").unwrap_err();
    let told = failure.to_string();
    assert_eq!(failure.class(), Class::NotSent, "{told}");
    for part in ["ended before it was ready", "status 7", "no such module"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(marked.alive(), [0; 0], "the child ended with it");
    stage.end(pool).await;
}

/// Starts a server, and lets its last holder go.
async fn released(mut process: Value) -> Ending {
    let stage = Stage::enter().await;
    let goodbye = stage.path("goodbye");
    process["goodbye"] = json!(goodbye);
    let settings = PoolSettings::default().with_grace(ms(0));
    let pool = Pool::new(settings.with_closing(GRACE)).unwrap();
    let mut events = pool.events();
    let session = pool.session("a");
    let config = stage.server(&json!({"process": process}));
    let lease = session.acquire(&config).await.unwrap();

    let begun = Instant::now();
    drop(lease);
    let closed = closed(&mut events).await;
    let took = begun.elapsed();

    gone(stage.started()).await;
    let ending = Ending {
        closed,
        wrote: fs::read_to_string(&goodbye).unwrap_or_default(),
        terms: stage.pids(EventKind::Term).len(),
        took,
    };
    stage.end(pool).await;
    ending
}

async fn closed(events: &mut Receiver<PoolEvent>) -> Closed {
    let seen = timeout(secs(10), async {
        loop {
            match events.recv().await {
                Ok(PoolEvent::Closed { closed, .. }) => return closed,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => panic!("the pool is here"),
            }
        }
    });
    seen.await.expect("it is closed")
}
