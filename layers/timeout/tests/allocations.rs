//! What a call costs in allocations.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use steadfast_classify::{Call, CallContext, Failure};
use steadfast_timeout::{DeadlineLayer, TimeoutLayer};
use tower::{Service, ServiceBuilder, service_fn};

struct Counting;

thread_local! {
    // Const-initialised, so that counting does not allocate itself.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[allow(
    unsafe_code,
    reason = "an allocator that counts is unsafe by its trait"
)]
// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Default)]
struct Req(CallContext);

impl Call for Req {
    fn context(&self) -> Option<&CallContext> {
        Some(&self.0)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_tracked_allocates_nothing() {
    assert_eq!(allocations(Req::default(), 0), 0, "answered at once");
    assert_eq!(allocations(Req::default(), 3), 0, "after a timer was armed");
}

#[tokio::test(start_paused = true)]
async fn a_tracked_attempt_allocates_its_flight_and_nothing_else() {
    let tracked = || Req(CallContext::tracked());

    assert_eq!(allocations(tracked(), 0), 1, "answered at once");
    assert_eq!(allocations(tracked(), 3), 1, "after a timer was armed");
}

/// The allocations of a call that is pending this often before it is answered.
fn allocations(request: Req, pending: u32) -> u64 {
    let mut service = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(TimeoutLayer::default())
        .service(service_fn(move |_: Req| {
            let mut left = pending;
            std::future::poll_fn(move |_| match left.checked_sub(1) {
                Some(less) => {
                    left = less;
                    Poll::Pending
                }
                None => Poll::Ready(Ok::<_, Failure>(())),
            })
        }));
    let before = ALLOCATIONS.with(Cell::get);
    let mut call = pin!(service.call(request));
    let mut cx = Context::from_waker(Waker::noop());
    while call.as_mut().poll(&mut cx).is_pending() {}
    ALLOCATIONS.with(Cell::get) - before
}
