//! What a call costs: time and allocations.

use std::{
    future::poll_fn,
    hint::black_box,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::{allocations, echo::Numbered};

/// Calls per round and thread: few, so that some rounds are not interrupted however busy
/// the machine is.
const CALLS: u32 = 2_500;
/// Calls after which everything that is made once has been made.
const WARM_UP: u32 = 250;
/// The part of a round in which all its threads have to have run, for it to say anything
/// about what they cost each other.
const TOGETHER: f64 = 0.9;

/// When a thread began and ended.
type Span = (Instant, Instant);

/// Nanoseconds per call and thread in one round, infinite if the threads did not run at
/// the same time. They have a clone each, which share what the layers share.
pub fn nanos<S, R>(service: &S, threads: usize) -> f64
where
    S: Service<R> + Clone + Send,
    R: Numbered,
{
    let missing = &AtomicUsize::new(threads);
    let spans: Vec<Span> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                let service = service.clone();
                scope.spawn(move || time(service, missing))
            })
            .collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    if overlap(&spans) < TOGETHER {
        return f64::INFINITY;
    }
    let sum: Duration = spans.iter().map(|(begun, ended)| *ended - *begun).sum();
    sum.as_nanos() as f64 / (threads as f64 * f64::from(CALLS))
}

/// Allocations per call.
pub fn allocations<S, R>(mut service: S) -> f64
where
    S: Service<R>,
    R: Numbered,
{
    runtime().block_on(async {
        call(&mut service, WARM_UP).await;
        let before = allocations::so_far();
        call(&mut service, WARM_UP).await;
        (allocations::so_far() - before) as f64 / f64::from(WARM_UP)
    })
}

fn time<S, R>(mut service: S, missing: &AtomicUsize) -> Span
where
    S: Service<R>,
    R: Numbered,
{
    runtime().block_on(async {
        call(&mut service, WARM_UP).await;
        missing.fetch_sub(1, Ordering::Relaxed);
        // Goes on until all are here, since waking up takes longer than a round.
        while missing.load(Ordering::Relaxed) > 0 {
            call(&mut service, WARM_UP).await;
        }
        let begun = Instant::now();
        call(&mut service, CALLS).await;
        (begun, Instant::now())
    })
}

/// Which part of the time that any of them took, all of them took together.
fn overlap(spans: &[Span]) -> f64 {
    let first = spans.iter().map(|(begun, _)| *begun);
    let last = spans.iter().map(|(_, ended)| *ended);
    let any = last.clone().max().unwrap() - first.clone().min().unwrap();
    let all = last.min().unwrap() - first.max().unwrap();
    all.div_duration_f64(any)
}

async fn call<S, R>(service: &mut S, calls: u32)
where
    S: Service<R>,
    R: Numbered,
{
    for number in 0..calls {
        let request = black_box(R::new(number.into()));
        let ready = poll_fn(|cx| service.poll_ready(cx)).await;
        assert!(ready.is_ok());
        assert!(black_box(service.call(request).await).is_ok());
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}
