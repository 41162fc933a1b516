//! What the layers cost: each alone and all together, over a service that is ready at once
//! and over one that is pending once, on one thread and on two.
//!
//! ```text
//! cargo bench --bench overhead
//! ```
//!
//! Prints nanoseconds per call, the best of several rounds, and what it is above the bare
//! service.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and its set-up cannot fail"
)]

use std::{
    future::{Future, poll_fn},
    hint::black_box,
    pin::Pin,
    sync::Barrier,
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

const CALLS: u32 = 200_000;
const ROUNDS: usize = 7;

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

/// What is measured: a name and a way to measure it over an [`Echo`].
struct Subject {
    name: &'static str,
    tracked: bool,
    measure: Box<dyn Fn(Echo, CallContext, usize) -> f64>,
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
        measure: Box::new(move |echo, context, threads| {
            // One clone for each thread: they share what the layers share.
            let service = layer.layer(echo);
            let services: Vec<S> = (0..threads).map(|_| service.clone()).collect();
            best(&services, &context)
        }),
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
    println!("ns per call, in parentheses above bare");
    println!(
        "{:<22} {:>15} {:>15} {:>15} {:>15}",
        "", "ready, 1 thread", "2 threads", "pending, 1 thr.", "2 threads"
    );
    let mut bare: Option<Vec<f64>> = None;
    for subject in subjects() {
        let context = match subject.tracked {
            true => CallContext::tracked(),
            false => CallContext::new(),
        };
        let cells = [(false, 1), (false, 2), (true, 1), (true, 2)];
        let taken: Vec<f64> = cells
            .into_iter()
            .map(|(pending_once, threads)| {
                (subject.measure)(Echo { pending_once }, context.clone(), threads)
            })
            .collect();
        let base = bare.get_or_insert_with(|| taken.clone());
        print!("{:<22}", subject.name);
        for (taken, base) in taken.iter().zip(base.iter()) {
            print!(" {taken:>7.0} ({:>+5.0})", taken - base);
        }
        println!();
    }
}

/// Nanoseconds per call and thread, the best of several rounds.
fn best<S>(services: &[S], context: &CallContext) -> f64
where
    S: Service<Request> + Clone + Send,
    S::Error: std::fmt::Debug,
{
    (0..ROUNDS)
        .map(|_| round(services.to_vec(), context))
        .fold(f64::INFINITY, f64::min)
}

fn round<S>(services: Vec<S>, context: &CallContext) -> f64
where
    S: Service<Request> + Send,
    S::Error: std::fmt::Debug,
{
    let start = Barrier::new(services.len());
    let start = &start;
    thread::scope(|scope| {
        let threads: Vec<_> = services
            .into_iter()
            .enumerate()
            .map(|(session, service)| {
                let request = Request {
                    session: session as u64,
                    context: context.clone(),
                };
                scope.spawn(move || {
                    start.wait();
                    drive(service, &request)
                })
            })
            .collect();
        let count = threads.len();
        let sum: f64 = threads.into_iter().map(|it| it.join().unwrap()).sum();
        sum / count as f64
    })
}

fn drive<S>(mut service: S, request: &Request) -> f64
where
    S: Service<Request>,
    S::Error: std::fmt::Debug,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        for _ in 0..CALLS {
            poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
            black_box(service.call(black_box(request.clone())).await.is_ok());
        }
        begun.elapsed().as_nanos() as f64 / f64::from(CALLS)
    })
}
