//! That a call that succeeds allocates nothing.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use steadfast_classify::Failure;
use steadfast_retry::RetryLayer;
use tower::{Layer, Service};

mod support;
use support::Request;

struct CountingAllocator;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[allow(
    unsafe_code,
    reason = "an allocator that counts cannot be written without"
)]
// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Allocations of this thread while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

#[derive(Clone)]
struct Echo;

impl Service<Request> for Echo {
    type Response = Request;
    type Error = Failure;
    type Future = Ready<Result<Request, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ready(Ok(request))
    }
}

fn call(service: &mut impl Service<Request, Response = Request, Error = Failure>) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let future = pin!(service.call(Request::write()));
    let Poll::Ready(Ok(echo)) = future.poll(&mut cx) else {
        panic!("the echo is ready at once");
    };
    assert!(echo.context.idempotency_key().is_some());
}

#[test]
fn a_call_that_succeeds_allocates_nothing() {
    let mut service = RetryLayer::default().layer(Echo);

    let count = allocations(|| (0..100).for_each(|_| call(&mut service)));

    assert_eq!(count, 0);
}

#[test]
fn a_clone_made_for_one_call_allocates_nothing() {
    let service = RetryLayer::default().layer(Echo);

    let count = allocations(|| (0..100).for_each(|_| call(&mut service.clone())));

    assert_eq!(count, 0);
}

#[test]
fn a_clone_that_stays_allocates_once() {
    let mut service = RetryLayer::default().layer(Echo).clone();

    let count = allocations(|| (0..100).for_each(|_| call(&mut service)));

    assert_eq!(count, 1);
}
