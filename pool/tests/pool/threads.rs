//! Everything at once, on several threads and a real clock.

use std::{
    mem,
    sync::{Arc, mpsc},
    time::Duration,
};

use futures::future::join_all;
use steadfast_classify::{Class, Failure};
use steadfast_pool::{Pool, PoolSettings, Respawn, Session, SlotMode};
use tokio::{runtime::Builder, task::yield_now};

use crate::support::{World, call, keyed, pool_with, secs, unpooled};

/// Small numbers that anybody can repeat.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // A linear congruential generator; its high bits are good enough.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

#[test]
fn sessions_on_many_threads_neither_block_nor_lose_anything() {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let (told, done) = mpsc::channel();
    runtime.spawn(async move {
        everything_at_once().await;
        told.send(()).expect("somebody waits");
    });

    // Threads that wait for each other would stop any timer of theirs as well.
    if done.recv_timeout(secs(120)).is_err() {
        mem::forget(runtime);
        panic!("something failed, or waits for ever");
    }
}

async fn everything_at_once() {
    let at_once = Respawn::new([Duration::ZERO; 3], Duration::from_millis(1));
    let settings = PoolSettings::default()
        .with_grace(Duration::ZERO)
        .with_slots(SlotMode::Warn(2))
        .with_respawn_local(at_once.clone())
        .with_respawn_remote(at_once);
    let (pool, world) = pool_with(settings);
    let agents = (0..16).map(|n| tokio::spawn(agent(pool.clone(), world.clone(), n)));

    for agent in join_all(agents).await {
        agent.expect("no panic");
    }

    world.check();
    let report = pool.drain_all(secs(10)).await;
    assert!(report.forced.is_empty(), "{report:?}");
    assert_eq!(world.alive(), 0);
    assert_eq!(pool.slots().held.len(), 0);
    let snapshot = pool.snapshot();
    let entries = snapshot
        .servers
        .values()
        .flat_map(|server| &server.entry_summary);
    let held = entries.map(|entry| entry.refs + entry.in_flight);
    assert_eq!(held.sum::<usize>(), 0);
}

/// Comes, calls, breaks and goes, some hundred times.
async fn agent(pool: Pool, world: World, seed: u64) {
    let mut dice = Dice(seed + 1);
    let configs = [
        keyed("a", "x"),
        keyed("a", "y"),
        keyed("b", "x"),
        unpooled("own"),
    ];
    for turn in 0..150 {
        let session = Arc::new(pool.session(format!("{seed}-{turn}")));
        let config = &configs[usize::try_from(dice.roll(4)).expect("small")];
        let closing = (dice.roll(8) == 0).then(|| tokio::spawn(close(Arc::clone(&session))));
        // Those who come meet those that are just being started.
        for _ in 0..50 {
            drop(session.lease(config));
        }
        if let Ok(lease) = session.acquire(config).await {
            for _ in 0..dice.roll(4) {
                check(call(&lease).await.map(drop));
            }
        }
        match dice.roll(12) {
            0 => drop(pool.restart(config.name(), None).await),
            1 => pool.retire(config.name()),
            2 | 3 => {
                if let Some(link) = world.links(config.name()).last() {
                    link.crash();
                }
            }
            4 => drop(pool.snapshot()),
            _ => {}
        }
        if let Some(closing) = closing {
            closing.await.expect("no panic");
        }
    }
}

async fn close(session: Arc<Session>) {
    yield_now().await;
    session.close();
}

/// A call that fails says what became of it, and nothing else is said.
fn check(called: Result<(), Failure>) {
    if let Err(failure) = called {
        let known = [
            Class::NotSent,
            Class::Unknown,
            Class::Rejected,
            Class::Cancelled,
        ];
        assert!(known.contains(&failure.class()), "{failure}");
    }
}
