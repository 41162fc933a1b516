//! Real servers, and a look at how often they are looked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use tokio::{io::AsyncReadExt as _, time::sleep};

use super::{Exit, Grace, InheritedEnv, Process, Spawned, Spec, Step, Watchdog, spawn, sys};

const SERVERS: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_end_at_once_share_their_looks_at_the_process_table() {
    let (watchdog, looks) = watched();
    let servers = start(&watchdog, "echo up; exec cat").await;

    let ends = servers.into_iter().map(|mut server| async {
        server.process.note_descendants().await;
        drop(server.stdin);
        server.process.shutdown(Grace::default()).await
    });
    let ends = join_all(ends).await;

    for end in &ends {
        assert!(end.step <= Step::Eof, "{end:?}");
        assert_eq!(end.exit, Some(Exit::Code(0)));
        assert_eq!((end.survivors, end.sweep.found), (Some(0), Some(0)));
    }
    let looks = looks.load(Ordering::Relaxed);
    println!("{looks} looks for {SERVERS} servers");
    assert!(looks <= SERVERS, "{looks} looks: less than one for each");
}

#[tokio::test]
async fn servers_that_are_killed_together_take_two_looks_and_leave_nothing() {
    let (watchdog, looks) = watched();
    let servers = start(&watchdog, "trap '' TERM; setsid sleep 99 & echo up; wait").await;
    let tails: Vec<_> = servers
        .iter()
        .map(|server| (server.process.exit(), server.process.pid()))
        .collect();
    let (other, others_looks) = watched();
    let others = start(&other, "echo up; exec cat").await;
    let marks = [&watchdog, &other].map(|watchdog| watchdog.variable(0).1);

    Process::kill_all(
        servers
            .into_iter()
            .chain(others)
            .map(|server| server.process),
    );

    assert_eq!(looks.load(Ordering::Relaxed), 2);
    assert_eq!(others_looks.load(Ordering::Relaxed), 2);
    for (exit, pid) in tails {
        assert_eq!(exit.await, Exit::Signal(9));
        assert!(sys::identity(pid).unwrap().is_none(), "{pid} is a zombie");
    }
    for mark in marks {
        let prefix = format!("STEADFAST_POOL={}:", mark.split(':').next().unwrap());
        assert_eq!(left(&prefix).await, 0);
    }
}

/// A watchdog, and how often the table is read for its servers.
fn watched() -> (Watchdog, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let watchdog = Watchdog::looking_with(move |since, prefix| {
        counted.fetch_add(1, Ordering::Relaxed);
        sys::table(since, prefix)
    });
    (watchdog, looks)
}

/// Starts servers, and returns when each has said that it is up.
async fn start(watchdog: &Watchdog, script: &str) -> Vec<Spawned> {
    let spec = Spec::new("sh")
        .with_args(["-c", script])
        .with_env(InheritedEnv::capture().with([]));
    let mut servers: Vec<_> = (0..SERVERS)
        .map(|_| spawn(&spec, watchdog, 1024).expect("it starts"))
        .collect();
    for server in &mut servers {
        server.stdout.read_u8().await.expect("it is up");
    }
    servers
}

/// How many processes with such a mark still run after a while.
async fn left(prefix: &str) -> usize {
    for _ in 0..300 {
        let table = sys::table(0, prefix.as_bytes()).expect("a table");
        match table.marked() {
            0 => return 0,
            _ => sleep(Duration::from_millis(10)).await,
        }
    }
    sys::table(0, prefix.as_bytes()).expect("a table").marked()
}
