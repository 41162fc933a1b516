use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use futures::future::join_all;
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
};

use super::{
    super::table::{Ancestor, Identity, Row},
    *,
};

/// Looks that begin when the test says so. What a look shows is how many began before it.
struct Gate {
    census: Census,
    begun: Receiver<u64>,
    open: Sender<()>,
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_during_a_look_share_the_next_and_get_nothing_of_this_one() {
    let gate = gate();
    let first = tokio::spawn(asks(&gate.census, 50));
    gate.begins(50).await;
    let later: Vec<_> = (0..10)
        .map(|n| tokio::spawn(asks(&gate.census, 40 - n)))
        .collect();
    yield_now().await;

    gate.open.send(()).unwrap();
    // As far back as the one of them who needs it most.
    gate.begins(31).await;
    gate.open.send(()).unwrap();

    assert_eq!(first.await.unwrap(), 0);
    for look in join_all(later).await {
        assert_eq!(look.unwrap(), 1);
    }
    assert!(gate.begun.try_recv().is_err(), "two looks for eleven");
}

#[test]
fn no_look_that_began_before_a_change_is_given_to_who_asks_after_it() {
    let changes = Arc::new(AtomicU64::new(0));
    let (seen, looks) = (Arc::clone(&changes), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&looks);
    let census = Census::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let before = seen.load(Ordering::SeqCst);
        thread::sleep(Duration::from_micros(200));
        Ok(showing(before))
    });

    let asker = || {
        let (census, changes) = (census.clone(), Arc::clone(&changes));
        async move {
            for _ in 0..200 {
                let own = changes.fetch_add(1, Ordering::SeqCst) + 1;
                let shown = shown(&census.look(0).await);
                assert!(shown >= own, "{shown} of {own}");
            }
        }
    };
    let runtime = runtime(512);
    let askers: Vec<_> = (0..16).map(|_| runtime.spawn(asker())).collect();
    for asker in askers {
        runtime.block_on(asker).unwrap();
    }

    let looks = looks.load(Ordering::Relaxed);
    assert!(looks < 16 * 200 / 4, "{looks} looks are hardly shared");
}

#[test]
fn where_no_thread_is_free_one_who_waits_looks_for_all_who_do() {
    let gate = gate();
    let runtime = runtime(1);
    let (free, taken) = channel::<()>();
    runtime.spawn_blocking(move || taken.recv());
    gate.open.send(()).unwrap();

    // In one task, so that all have asked before the first has waited for long.
    let all = join_all((0..10).map(|_| asks(&gate.census, 7)));
    let all = runtime.block_on(runtime.spawn(all)).unwrap();
    assert_eq!(all, [0; 10]);

    assert_eq!(gate.begun.try_iter().count(), 1);
    drop(free);
}

#[test]
fn a_runtime_that_ends_before_the_look_began_leaves_the_next_one_to_others() {
    let gate = gate();
    let (free, taken) = channel::<()>();
    let ending = runtime(1);
    ending.spawn_blocking(move || taken.recv());
    ending.spawn(asks(&gate.census, 7));
    while gate.census.0.state().asked == 0 {
        thread::yield_now();
    }
    ending.shutdown_background();
    // One for a machine so slow that who asked there has begun a look itself by then.
    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();

    let look = runtime(1).block_on(asks(&gate.census, 7));

    assert!(look <= 1, "{look}");
    drop(free);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_is_repeated_and_who_asks_next_is_answered() {
    let looks = AtomicU64::new(0);
    let census = Census::new(move |_| match looks.fetch_add(1, Ordering::Relaxed) {
        // Without the noise of the panic hook.
        0 => std::panic::resume_unwind(Box::new("once")),
        n => Ok(showing(n)),
    });

    assert_eq!(asks(&census, 0).await, 1);
    assert_eq!(asks(&census, 0).await, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_for_those_who_have_gone() {
    let gate = gate();
    let first = tokio::spawn(asks(&gate.census, 50));
    gate.begins(50).await;
    let gone = tokio::spawn(asks(&gate.census, 1));
    yield_now().await;
    gone.abort();
    let stays = tokio::spawn(asks(&gate.census, 40));
    yield_now().await;

    gate.open.send(()).unwrap();
    gate.begins(40).await;
    gate.open.send(()).unwrap();

    assert_eq!((first.await.unwrap(), stays.await.unwrap()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_table_that_cannot_be_read_is_told_to_all_who_share_it() {
    let census = Census::new(|_| Err(io::ErrorKind::PermissionDenied.into()));

    for look in join_all((0..3).map(|_| census.look(0))).await {
        assert_eq!(look.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
    assert!(census.look_now(0).is_err());
}

fn asks(census: &Census, since: u64) -> impl Future<Output = u64> + use<> {
    let census = census.clone();
    async move { shown(&census.look(since).await) }
}

/// A table that shows a number.
fn showing(number: u64) -> ProcessTable {
    ProcessTable::new(vec![Row {
        id: Identity {
            pid: 2,
            start: number,
        },
        ppid: 1,
        pgid: 2,
        dead: false,
        mark: Some(0),
    }])
}

fn shown(look: &Look) -> u64 {
    let nobody = Identity { pid: 3, start: 0 };
    let ancestor = Ancestor {
        leader: nobody,
        mark: 0,
    };
    let family = look.as_ref().unwrap().family(ancestor, &[], 4);
    family.escaped[0].start
}

fn gate() -> Gate {
    let (tell, begun) = channel();
    let (open, opened) = channel();
    let (opened, looks) = (Mutex::new(opened), AtomicU64::new(0));
    let census = Census::new(move |since| {
        let before = looks.fetch_add(1, Ordering::Relaxed);
        tell.send(since).unwrap();
        opened.lock().unwrap().recv().unwrap();
        Ok(showing(before))
    });
    Gate {
        census,
        begun,
        open,
    }
}

fn runtime(blocking: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).max_blocking_threads(blocking);
    builder.enable_all().build().unwrap()
}

// === impl Gate ===

impl Gate {
    /// Waits until a look has begun that goes back this far.
    async fn begins(&self, since: u64) {
        loop {
            match self.begun.try_recv() {
                Ok(begun) => return assert_eq!(begun, since),
                Err(_) => yield_now().await,
            }
        }
    }
}
