//! That nothing adds up in a pool, however many servers come and go. A test binary of its own:
//! what is allocated means something only while nothing else runs in it.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(
    dead_code,
    unused_imports,
    reason = "the tests beside this one use the rest of what they share"
)]

#[path = "../pool/support/mod.rs"]
mod support;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures::{StreamExt as _, stream};
use steadfast_classify::Class;
use steadfast_pool::{Pool, PoolSettings, SlotMode};
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};

use crate::support::{
    Connecting, World, call, keyed, millis, pool_with, refusal, secs, settle, slow, spawn_call,
    unpooled,
};

const LIVES: usize = 10_000;
const AT_ONCE: usize = 50;

struct Counting;

/// How many bytes are allocated now.
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[tokio::test(start_paused = true)]
async fn i12_ten_thousand_lives_leave_no_task_no_entry_and_no_memory() {
    let (pool, world) = pool_with(PoolSettings::default().with_slots(SlotMode::Enforce(100)));
    world.plan("slow", |plan| plan.start = secs(3));
    world.plan("hangs", |plan| plan.close_hangs = true);
    // What is made once and kept.
    lives(&pool, &world, 0..LIVES / 10).await;
    let before = LIVE.load(Relaxed);

    lives(&pool, &world, LIVES / 10..LIVES / 2).await;
    let half = LIVE.load(Relaxed);
    lives(&pool, &world, LIVES / 2..LIVES).await;
    let whole = LIVE.load(Relaxed);

    println!("{before} bytes after a tenth, {half} after half, {whole} after {LIVES} lives");
    // One byte and a half for each life would be seen.
    assert!(half.abs_diff(before) < 8 << 10, "{before} and {half}");
    assert!(whole.abs_diff(half) < 8 << 10, "{half} and {whole}");
    world.check();
}

/// So many servers, each with a fate of its own, and until all of them have gone.
async fn lives(pool: &Pool, world: &World, numbers: std::ops::Range<usize>) {
    let count = numbers.len();
    let lives = stream::iter(numbers).map(|number| live(pool, world, number));
    assert_eq!(lives.buffer_unordered(AT_ONCE).count().await, count);
    // The grace, the end of those that do not end, and a minute in which failures are
    // remembered: then the next who comes finds out that nobody needs that any more.
    for _ in 0..2 {
        sleep(secs(61)).await;
        drop(pool.session("s").acquire(&keyed("a", "last")).await);
        sleep(secs(31)).await;
    }

    let (tasks, left) = (Handle::current().metrics().num_alive_tasks(), world.alive());
    assert_eq!((tasks, left), (0, 0));
    let snapshot = pool.snapshot();
    assert_eq!((snapshot.total, snapshot.slots.used), (0, 0));
    assert!(snapshot.servers.is_empty(), "{snapshot:?}");
    let slots = pool.slots();
    assert!(slots.held.is_empty() && slots.refused.is_empty());
    world.forget();
}

async fn live(pool: &Pool, world: &World, number: usize) {
    let session = pool.session("s");
    let config = |name| keyed(name, &number.to_string());
    match number % 8 {
        // It works, for one or for all.
        0 => drop(call(&session.acquire(&config("a")).await.expect("it starts")).await),
        1 => drop(call(&session.acquire(&unpooled("own")).await.expect("it starts")).await),
        // It cannot be started.
        2 => {
            world.plan("fails", |plan| plan.starts.push_back(Connecting::fails()));
            assert_eq!(
                refusal(session.acquire(&config("fails")).await),
                Class::NotSent
            );
        }
        3 => {
            world.plan("panics", |plan| plan.starts.push_back(Connecting::Panics));
            refusal(session.acquire(&config("panics")).await);
        }
        // It is given up while it starts.
        4 => {
            let slow = config("slow");
            let acquired = timeout(secs(1), session.acquire(&slow)).await;
            assert!(acquired.is_err());
        }
        // It crashes in a call, and another one comes.
        5 => {
            let lease = session
                .acquire(&config("crashes"))
                .await
                .expect("it starts");
            let running = spawn_call(&lease, slow(&lease, 60_000));
            settle().await;
            for link in world.links("crashes") {
                link.crash();
            }
            assert_eq!(refusal(running.await.expect("no panic")), Class::Unknown);
            // Another one comes, unless one of its neighbours made that crash too.
            drop(call(&lease).await);
        }
        // It is restarted under a session that holds it, or retired: with all of its name.
        6 if number.is_multiple_of(16) => {
            let lease = session.acquire(&config("again")).await.expect("it starts");
            pool.restart("again", None).await;
            call(&lease).await.expect("it was restarted");
        }
        6 => {
            let acquired = session.acquire(&config("leaves")).await;
            pool.retire("leaves");
            if let Ok(lease) = acquired {
                assert_eq!(refusal(call(&lease).await), Class::Rejected);
            }
        }
        // It does not end.
        _ => drop(session.acquire(&config("hangs")).await.expect("it starts")),
    }
    sleep(millis(number as u64 % 100)).await;
}
