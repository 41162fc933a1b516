//! A call that passes allocates nothing.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use steadfast_circuit_breaker::{CircuitBreaker, CircuitBreakerLayer, Select, Settings};
use steadfast_classify::Failure;
use tower::{Layer, Service};

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is the system allocator's; the counter allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Answers at once.
#[derive(Clone)]
struct Echo;

impl Service<u32> for Echo {
    type Response = u32;
    type Error = Failure;
    type Future = Ready<Result<u32, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Self::Future {
        ready(Ok(request))
    }
}

fn call<Sel: Select<u32>>(service: &mut CircuitBreaker<Echo, Sel>, request: u32) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready());
    let response = pin!(service.call(request));
    match response.poll(&mut context) {
        Poll::Ready(result) => assert_eq!(result.expect("it succeeds"), request),
        Poll::Pending => panic!("it answers at once"),
    }
}

fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    run();
    COUNT.get() - before
}

#[test]
fn a_success_allocates_nothing() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let mut service = layer.layer(Echo);
    // The second call makes a hold on the circuit that is this service's own.
    (0..2).for_each(|n| call(&mut service, n));

    let count = allocations(|| (0..1000).for_each(|n| call(&mut service, n)));

    assert_eq!(count, 0);
}

#[test]
fn a_clone_made_for_one_call_allocates_nothing() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let service = layer.layer(Echo);

    let count = allocations(|| (0..1000).for_each(|n| call(&mut service.clone(), n)));

    assert_eq!(count, 0);
}

#[test]
fn a_clone_that_stays_allocates_once() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let mut clone = layer.layer(Echo).clone();

    let count = allocations(|| (0..1000).for_each(|n| call(&mut clone, n)));

    assert_eq!(count, 1);
}

#[test]
fn a_success_by_key_allocates_nothing() {
    let key = |request: &u32| request % 10;
    let layer = CircuitBreakerLayer::keyed("server", Settings::new(), key).unwrap();
    let mut service = layer.layer(Echo);
    (0..10).for_each(|n| call(&mut service, n));

    // Another key each time: what is remembered is never the right one.
    let changing = allocations(|| (0..1000).for_each(|n| call(&mut service, n)));
    // The same key: the second call makes a hold of its own.
    let same = allocations(|| (0..1000).for_each(|_| call(&mut service, 7)));

    assert_eq!((changing, same), (0, 1));
}

/// A window that keeps every call, and costs more the more there were.
#[tokio::test(start_paused = true)]
async fn trap_p19_a_window_is_as_large_after_many_calls_as_before() {
    let settings = Settings::new()
        .with_failure_rate(0.5)
        .with_slow_call_rate(0.5, Duration::from_secs(1))
        .with_window(Duration::from_secs(3600), 10);
    let layer = CircuitBreakerLayer::new("server", settings).unwrap();
    let mut service = layer.layer(Echo);
    (0..2).for_each(|n| call(&mut service, n));

    let count = allocations(|| (0..100_000).for_each(|n| call(&mut service, n)));

    assert_eq!(count, 0);
    assert_eq!(layer.breaker().snapshot().window.unwrap().calls, 100_002);
}
