//! The way of a call that is admitted allocates nothing.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]

mod support;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use steadfast_budget::{BudgetLayer, Keyed, RetryBudget};
use support::{Request, Reserving, global, limit, send};
use tower::{Layer, retry::budget::Budget};

/// Counts what its own thread allocates, whatever other threads do.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all of it is the system's, which is asked for exactly what was asked for here;
// the counter is a constant-initialised cell without a destructor, and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn an_admitted_call_of_a_known_key_allocates_nothing() {
    for max_wait in [Duration::ZERO, Duration::from_secs(1)] {
        let session = Keyed::new(limit("session", "10000/s"), |request: &Request| {
            request.session
        });
        let tool = Keyed::new(limit("tool", "10000/s"), |request: &Request| request.tool);
        let limits = session.then(tool).then(global("10000/s"));
        let layer = BudgetLayer::new(limits).with_max_wait(max_wait);
        let mut service = layer.layer(Reserving::new());
        let mut calls = |count: u64| {
            for call in 0..count {
                let request = Request::of(call % 10).with_tool(call % 3);
                let sent = pin!(send(&mut service, request));
                // It never has to wait, and so needs no runtime.
                let polled = sent.poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(polled, Poll::Ready(Ok(()))));
            }
        };

        calls(100);
        let before = ALLOCATIONS.get();
        calls(1_000);

        assert_eq!(ALLOCATIONS.get() - before, 0, "max_wait {max_wait:?}");
    }
}

#[test]
fn a_retry_budget_allocates_nothing() {
    let budget = RetryBudget::default();
    let before = ALLOCATIONS.get();

    for _ in 0..100 {
        budget.deposit();
        budget.withdraw();
    }

    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();

    drop(std::hint::black_box(Box::new(1)));

    assert_eq!(ALLOCATIONS.get() - before, 1);
}
