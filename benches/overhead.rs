//! What the layers cost: each alone and all together, over a service that is ready at once
//! and over one that is pending once, on one thread and on two.
//!
//! ```text
//! cargo bench --bench overhead
//! ```
//!
//! Prints nanoseconds per call, the best of many rounds, and what it is above the bare
//! service; `inf` where two threads never ran at the same time.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and its set-up cannot fail"
)]

use std::{
    future::{Future, poll_fn},
    hint::black_box,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll},
    thread,
    time::{Duration, Instant},
};

use steadfast::{
    Call, CallContext, Effect, Failure, Stack,
    budget::{BudgetLayer, Global, Keyed, Limit},
    circuit_breaker::{self, CircuitBreakerLayer},
    fallback::FallbackLayer,
    retry::RetryLayer,
    stack::NoFallback,
    timeout::{DeadlineLayer, TimeoutLayer},
};
use tower::{Layer, Service};

/// Calls per round and thread: few, so that some rounds are not interrupted however busy
/// the machine is.
const CALLS: u32 = 2_500;
const ROUNDS: usize = 200;
/// The part of a round in which all its threads have to have run, for it to say anything
/// about what they cost each other.
const TOGETHER: f64 = 0.9;

#[derive(Clone)]
struct Request {
    session: u64,
    context: CallContext,
}

impl Call for Request {
    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

/// Answers at once, or after being pending once.
#[derive(Clone)]
struct Echo {
    pending_once: bool,
}

struct Answer {
    pending: bool,
    session: u64,
}

// === impl Echo ===

impl Service<Request> for Echo {
    type Response = u64;
    type Error = Failure;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answer {
        Answer {
            pending: self.pending_once,
            session: request.session,
        }
    }
}

impl Future for Answer {
    type Output = Result<u64, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.pending) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(self.session))
    }
}

/// When a thread began and ended.
type Span = (Instant, Instant);

/// The ways in which a subject is measured: is it pending once, on how many threads.
const WAYS: [(bool, usize); 4] = [(false, 1), (false, 2), (true, 1), (true, 2)];

/// What is measured: a name, one round over an [`Echo`], and the best so far of each way.
struct Subject {
    name: &'static str,
    tracked: bool,
    round: Box<dyn Fn(Echo, CallContext, usize) -> f64>,
    best: [f64; WAYS.len()],
}

// === impl Subject ===

impl Subject {
    fn run(&mut self) {
        let context = match self.tracked {
            true => CallContext::tracked(),
            false => CallContext::new(),
        };
        for (best, (pending_once, threads)) in self.best.iter_mut().zip(WAYS) {
            let taken = (self.round)(Echo { pending_once }, context.clone(), threads);
            *best = best.min(taken);
        }
    }
}

fn subject<L, S>(name: &'static str, layer: L) -> Subject
where
    L: Layer<Echo, Service = S> + 'static,
    S: Service<Request> + Clone + Send + 'static,
    S::Error: std::fmt::Debug,
{
    Subject {
        name,
        tracked: false,
        round: Box::new(move |echo, context, threads| {
            // One clone for each thread: they share what the layers share.
            let service = layer.layer(echo);
            round((0..threads).map(|_| service.clone()).collect(), &context)
        }),
        best: [f64::INFINITY; WAYS.len()],
    }
}

fn subjects() -> Vec<Subject> {
    let circuit = || CircuitBreakerLayer::new("c", circuit_breaker::Settings::new()).unwrap();
    let limit = |name| Limit::new(name, "1000000000/s burst 1000000000".parse().unwrap());
    let global = Global::new(limit("all"));
    let keyed = Keyed::new(limit("session"), |request: &Request| request.session);
    let tracked = Subject {
        tracked: true,
        ..subject("full stack, tracked", Stack::new("s").build().unwrap())
    };
    let off = Stack::new("s")
        .with_timeout(
            steadfast::timeout::Settings::new()
                .with_connect(Duration::MAX)
                .with_read(Duration::MAX),
        )
        .with_total(Duration::MAX)
        .with_retry(steadfast::retry::Settings::new().with_max_retries(0))
        .without_breaker();
    vec![
        subject("bare", tower::layer::util::Identity::new()),
        subject("fallback", FallbackLayer::new(NoFallback)),
        subject("deadline (stamp)", DeadlineLayer::default().stamp_only()),
        subject("deadline (timer)", DeadlineLayer::default()),
        subject("budget, global", BudgetLayer::new(global.clone())),
        subject("budget, keyed", BudgetLayer::new(keyed.clone())),
        subject("retry", RetryLayer::default()),
        subject("circuit breaker", circuit()),
        subject("timeout", TimeoutLayer::default()),
        subject("full stack", Stack::new("s").build().unwrap()),
        subject("full stack, all off", off.build().unwrap()),
        subject(
            "full stack + global",
            Stack::new("s").with_admission(global).build().unwrap(),
        ),
        subject(
            "full stack + keyed",
            Stack::new("s").with_admission(keyed).build().unwrap(),
        ),
        tracked,
    ]
}

fn main() {
    let mut subjects = subjects();
    // They take turns, so that a busy machine slows them alike.
    for _ in 0..ROUNDS {
        subjects.iter_mut().for_each(Subject::run);
    }
    println!("ns per call, in parentheses above bare");
    println!(
        "{:<22} {:>15} {:>15} {:>15} {:>15}",
        "", "ready, 1 thread", "2 threads", "pending, 1 thr.", "2 threads"
    );
    let bare = subjects[0].best;
    for subject in subjects {
        print!("{:<22}", subject.name);
        for (taken, bare) in subject.best.iter().zip(bare) {
            print!(" {taken:>7.0} ({:>+5.0})", taken - bare);
        }
        println!();
    }
}

/// Nanoseconds per call and thread in one round.
fn round<S>(services: Vec<S>, context: &CallContext) -> f64
where
    S: Service<Request> + Send,
    S::Error: std::fmt::Debug,
{
    let count = services.len();
    let missing = &AtomicUsize::new(count);
    let spans: Vec<Span> = thread::scope(|scope| {
        let threads: Vec<_> = services
            .into_iter()
            .enumerate()
            .map(|(session, service)| {
                let request = Request {
                    session: session as u64,
                    context: context.clone(),
                };
                scope.spawn(move || drive(service, &request, missing))
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    if overlap(&spans) < TOGETHER {
        return f64::INFINITY;
    }
    let sum: Duration = spans.iter().map(|(begun, ended)| *ended - *begun).sum();
    sum.as_nanos() as f64 / (count as f64 * f64::from(CALLS))
}

/// Which part of the time that any of them took, all of them took together.
fn overlap(spans: &[Span]) -> f64 {
    let first = spans.iter().map(|(begun, _)| *begun);
    let last = spans.iter().map(|(_, ended)| *ended);
    let any = last.clone().max().unwrap() - first.clone().min().unwrap();
    let all = last.min().unwrap() - first.max().unwrap();
    all.div_duration_f64(any)
}

fn drive<S>(mut service: S, request: &Request, missing: &AtomicUsize) -> Span
where
    S: Service<Request>,
    S::Error: std::fmt::Debug,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        call(&mut service, request, CALLS / 10).await;
        missing.fetch_sub(1, Ordering::Relaxed);
        // Goes on until all are here, since waking up takes longer than a round.
        while missing.load(Ordering::Relaxed) > 0 {
            call(&mut service, request, CALLS / 10).await;
        }
        let begun = Instant::now();
        call(&mut service, request, CALLS).await;
        (begun, Instant::now())
    })
}

async fn call<S>(service: &mut S, request: &Request, calls: u32)
where
    S: Service<Request>,
    S::Error: std::fmt::Debug,
{
    for _ in 0..calls {
        poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
        black_box(service.call(black_box(request.clone())).await.is_ok());
    }
}
