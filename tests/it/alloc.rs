//! What the whole stack allocates for a call that succeeds: nothing, but for what is asked of it.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; the lint's own exception does not reach helpers"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::{Future, Ready, poll_fn, ready},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use steadfast::{
    Call, CallContext, Class, Effect, Failure, Sourced, Stack, ToolCall,
    budget::{Global, Limit},
    circuit_breaker::{self, Keyed},
    classify::{Caller, Question, Recoverable},
    fallback::{Bounds, Chain, Memory, Settings, Untagged},
    retry::{self, Backoff, Jitter},
    rmcp::model::CallToolResult,
    stack::StackLayer,
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

/// A request whose clone allocates nothing, unless it carries a `load`.
#[derive(Clone)]
struct Ask {
    server: Arc<str>,
    about: Arc<str>,
    arguments: Arc<[u8]>,
    effect: Effect,
    context: CallContext,
    load: Option<Box<u64>>,
}

/// Answers at once, after it has failed so often.
#[derive(Clone)]
struct Shop {
    fails: Arc<AtomicU32>,
    failure: Failure,
}

type Whole =
    StackLayer<Chain<Memory<u64>, Untagged>, Global, Keyed<Arc<str>, fn(&Ask) -> Arc<str>>>;

// === impl Ask ===

impl Ask {
    fn new(effect: Effect) -> Self {
        Self {
            server: "shop".into(),
            about: "price".into(),
            arguments: Arc::from(&b"tea"[..]),
            effect,
            context: CallContext::new(),
            load: None,
        }
    }

    fn tracked(mut self) -> Self {
        self.context.set_tracked(true);
        self
    }

    fn loaded(mut self) -> Self {
        self.load = Some(Box::new(1));
        self
    }
}

impl Call for Ask {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

impl Recoverable<u64> for Ask {
    fn server(&self) -> Option<&Arc<str>> {
        Some(&self.server)
    }

    fn question(&self) -> Option<Question> {
        let (about, arguments) = (Arc::clone(&self.about), Arc::clone(&self.arguments));
        Some(Question::new(about, arguments, Caller::Anyone))
    }
}

// === impl Shop ===

impl Service<Ask> for Shop {
    type Response = u64;
    type Error = Failure;
    type Future = Ready<Result<u64, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, ask: Ask) -> Self::Future {
        drop(ask);
        let left = self.fails.load(Relaxed);
        self.fails.store(left.saturating_sub(1), Relaxed);
        // Of a failure that is shared only the count grows.
        ready(if left == 0 {
            Ok(7)
        } else {
            Err(self.failure.clone())
        })
    }
}

#[test]
fn an_untracked_call_that_succeeds_allocates_nothing() {
    let stack = whole(3, true);

    assert_eq!(allocations(&stack, Ask::new(Effect::NonIdempotent)), 0);
    assert_eq!(allocations(&stack, Ask::new(Effect::Idempotent)), 0);
    let nothing_kept = whole(3, false);
    assert_eq!(allocations(&nothing_kept, Ask::new(Effect::ReadOnly)), 0);
}

#[test]
fn proof_of_delivery_costs_one_allocation() {
    let tracked = Ask::new(Effect::NonIdempotent).tracked();

    assert_eq!(allocations(&whole(3, true), tracked), 1);
}

#[test]
fn an_answer_that_is_kept_costs_what_its_store_takes() {
    let kept = allocations(&whole(3, true), Ask::new(Effect::ReadOnly));

    println!("an answer that is kept: {kept} allocations");
    assert!((1..=STORING).contains(&kept), "{kept}");
}

#[test]
fn a_request_is_cloned_for_each_attempt_that_another_may_follow() {
    let loaded = || Ask::new(Effect::Idempotent).loaded();

    // The last attempt there may be takes the request itself.
    assert_eq!(allocations(&whole(0, true), loaded()), 0);
    assert_eq!(allocations(&whole(3, true), loaded()), 1);

    let whole = whole(3, true);
    let bare = retried(&whole, Ask::new(Effect::Idempotent));
    // With feature `metrics` a retry is counted by class, and that label is allocated.
    assert!(bare <= 1, "{bare}");
    assert_eq!(retried(&whole, loaded()) - bare, 2, "one for each attempt");
}

#[test]
fn a_tool_result_that_says_where_it_came_from_costs_its_note() {
    let result = service_fn(|_: ToolCall| ready(Ok::<_, Failure>(CallToolResult::default())));
    let service = Stack::tools().build().unwrap().layer(result);
    let call = || {
        let mut call = ToolCall::new("w");
        call.context_mut().unwrap().set_tracked(false);
        call
    };

    let noted = third(service, [call(), call(), call()]);

    println!("a note in a tool result: {noted} allocations");
    assert!((1..=NOTING).contains(&noted), "{noted}");
}

/// What the embedded store takes for one answer, at most.
const STORING: usize = 16;

/// What a JSON object with one entry in another takes, at most.
const NOTING: usize = 8;

/// The whole stack, everything on.
fn whole(max_retries: u32, keeps: bool) -> Whole {
    let settings = Settings::new().with_enabled(keeps);
    let store = Memory::new(Bounds::new(), |_: &u64| 8).unwrap();
    let millisecond = Duration::from_millis(1);
    let backoff = Backoff::new(millisecond, millisecond, Jitter::Additive(0.0)).unwrap();
    let retry = retry::Settings::new()
        .with_max_retries(max_retries)
        .with_backoff(backoff);
    let limit = Limit::new("all", "1000/s burst 1000".parse().unwrap());
    Stack::new("shop")
        .with_retry(retry)
        .with_admission(Global::new(limit))
        .with_breaker_per(
            "servers",
            circuit_breaker::Settings::new(),
            (|ask| Arc::clone(&ask.server)) as fn(&Ask) -> Arc<str>,
        )
        .with_fallback(Chain::new(settings, store).unwrap().untagged())
        .build()
        .unwrap()
}

fn allocations(stack: &Whole, ask: Ask) -> usize {
    third(stack.layer(shop()), [ask.clone(), ask.clone(), ask])
}

/// Allocations of the third call, whose answer is there at once: a service that stays
/// allocates once for itself.
fn third<S, R, T>(mut service: S, requests: [R; 3]) -> usize
where
    S: Service<R, Response = Sourced<T>, Error = Failure>,
{
    let runtime = runtime();
    let _entered = runtime.enter();
    let mut context = Context::from_waker(Waker::noop());
    let mut counted = 0;
    for request in requests {
        let before = COUNT.get();
        assert!(service.poll_ready(&mut context).is_ready());
        let response = pin!(service.call(request));
        let Poll::Ready(Ok(answer)) = response.poll(&mut context) else {
            panic!("the service answers at once");
        };
        assert!(answer.is_live());
        counted = COUNT.get() - before;
    }
    counted
}

/// Allocations of the third call whose first attempt fails.
fn retried(stack: &Whole, ask: Ask) -> usize {
    runtime().block_on(async {
        let shop = shop();
        let mut service = stack.layer(shop.clone());
        let mut counted = 0;
        for ask in [ask.clone(), ask.clone(), ask] {
            shop.fails.store(1, Relaxed);
            poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
            let before = COUNT.get();
            let mut response = pin!(service.call(ask));
            counted = COUNT.get() - before;
            // Only what the service does counts, not what the runtime does while it waits.
            let answer = poll_fn(|cx| {
                let before = COUNT.get();
                let polled = response.as_mut().poll(cx);
                counted += COUNT.get() - before;
                polled
            });
            let answer = answer.await.unwrap();
            assert!(answer.is_live());
            assert_eq!(shop.fails.load(Relaxed), 0);
        }
        counted
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

fn shop() -> Shop {
    Shop {
        fails: Arc::default(),
        failure: Failure::new(Class::Unknown),
    }
}
