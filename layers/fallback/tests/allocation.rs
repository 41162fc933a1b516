//! What the layer allocates for a call that succeeds: nothing, but for what is kept.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, Ready, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use steadfast_classify::{Call, Effect, Failure};
use steadfast_fallback::{
    Bounds, Caller, Chain, FallbackLayer, Memory, Question, Recover, Recoverable, Settings,
};
use tower::{Layer as _, Service, service_fn};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone)]
struct Ask {
    server: Arc<str>,
    operation: Arc<str>,
    arguments: Arc<[u8]>,
    default: Arc<u64>,
    effect: Effect,
}

impl Call for Ask {
    fn effect(&self) -> Effect {
        self.effect
    }
}

impl Recoverable<u64> for Ask {
    fn server(&self) -> Option<&Arc<str>> {
        Some(&self.server)
    }

    fn question(&self) -> Option<Question> {
        let arguments = Arc::clone(&self.arguments);
        let operation = Arc::clone(&self.operation);
        Some(Question::new(operation, arguments, Caller::Anyone))
    }

    fn default_answer(&self) -> Option<Arc<u64>> {
        Some(Arc::clone(&self.default))
    }
}

fn ask(effect: Effect) -> Ask {
    Ask {
        server: "library".into(),
        operation: "fetch".into(),
        arguments: Arc::from(&b"a"[..]),
        default: Arc::new(0),
        effect,
    }
}

/// Allocations of the third call that succeeds, or of a clone's first.
fn allocations<P>(policy: P, effect: Effect, on_a_clone: bool) -> usize
where
    P: Recover<Ask, u64> + Clone,
{
    fn answer(_: Ask) -> Ready<Result<u64, Failure>> {
        ready(Ok(7))
    }

    let mut service = FallbackLayer::new(policy).layer(service_fn(answer));
    let mut context = Context::from_waker(Waker::noop());
    let requests = [ask(effect), ask(effect), ask(effect)];
    let mut counted = 0;
    for request in requests {
        let before = COUNT.get();
        if on_a_clone {
            service = service.clone();
        }
        assert!(Service::<Ask>::poll_ready(&mut service, &mut context).is_ready());
        let response = pin!(service.call(request));
        let Poll::Ready(Ok(answer)) = response.poll(&mut context) else {
            panic!("the inner service is always ready");
        };
        counted = COUNT.get() - before;
        assert!(answer.is_live());
    }
    counted
}

fn chain(settings: Settings) -> impl Recover<Ask, u64> + Clone {
    let store = Memory::new(Bounds::new(), |_: &u64| 8).expect("the defaults are valid");
    Chain::new(settings, store)
        .expect("the defaults are valid")
        .untagged()
}

#[test]
fn a_call_whose_answer_is_not_kept_allocates_nothing() {
    let off = Settings::new().with_enabled(false);
    let closure = |_: &Failure| None;

    for on_a_clone in [false, true] {
        let write = allocations(chain(Settings::new()), Effect::NonIdempotent, on_a_clone);
        let read_while_off = allocations(chain(off), Effect::ReadOnly, on_a_clone);
        let under_a_closure = allocations(closure, Effect::ReadOnly, on_a_clone);
        // The count counts: this one is kept.
        let kept = allocations(chain(Settings::new()), Effect::ReadOnly, on_a_clone);

        assert_eq!((write, read_while_off, under_a_closure), (0, 0, 0));
        assert!(kept > 0);
    }
}
