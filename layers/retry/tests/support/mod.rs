//! A scripted server behind a retry layer.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of this"
)]

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use steadfast_classify::{BoxError, Call, CallContext, Class, Effect, Failure, Limits};
use steadfast_retry::{Backoff, Budget, Jitter, RetryLayer, Settings};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, util::MapErr};
use tower_test::mock::{self, Mock};

/// A request with all that a layer may ask of one.
#[derive(Clone, Debug)]
pub struct Request {
    pub effect: Effect,
    pub context: CallContext,
}

/// A request as it arrived, and when.
#[derive(Debug)]
pub struct Seen {
    pub at: Duration,
    pub request: Request,
}

/// What came of a call.
#[derive(Debug)]
pub struct Run {
    pub result: Answer,
    /// One for each attempt that reached the server.
    pub seen: Vec<Seen>,
    pub took: Duration,
}

/// A budget that counts, and refuses once it has allowed so many retries.
#[derive(Debug)]
pub struct Counting {
    pub deposits: AtomicU32,
    pub withdrawals: AtomicU32,
    limit: u32,
}

pub type Answer = Result<&'static str, Failure>;
pub type Server = MapErr<Mock<Request, &'static str>, fn(BoxError) -> Failure>;
pub type Handle = mock::Handle<Request, &'static str>;

// === impl Request ===

impl Request {
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            context: CallContext::new(),
        }
    }

    /// Repeating it is harmless.
    pub fn read() -> Self {
        Self::new(Effect::ReadOnly)
    }

    /// It must not run twice.
    pub fn write() -> Self {
        Self::new(Effect::NonIdempotent)
    }

    pub fn due_in(mut self, limit: Duration) -> Self {
        self.context.cap_deadline(Instant::now() + limit);
        self
    }

    pub fn with_max_retries(mut self, retries: u32) -> Self {
        let limits = Limits::new().with_max_retries(retries);
        self.context.set_limits(Arc::new(limits));
        self
    }
}

impl Call for Request {
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

// === impl Run ===

impl Run {
    pub fn failure(&self) -> &Failure {
        self.result.as_ref().expect_err("the call succeeded")
    }

    pub fn attempts(&self) -> usize {
        self.seen.len()
    }

    /// The waits between attempts.
    pub fn waits(&self) -> Vec<Duration> {
        self.seen
            .windows(2)
            .map(|pair| pair[1].at - pair[0].at)
            .collect()
    }
}

// === impl Counting ===

impl Counting {
    pub fn up_to(limit: u32) -> Arc<Self> {
        Arc::new(Self {
            deposits: AtomicU32::new(0),
            withdrawals: AtomicU32::new(0),
            limit,
        })
    }

    pub fn deposits(&self) -> u32 {
        self.deposits.load(Ordering::Relaxed)
    }

    pub fn withdrawals(&self) -> u32 {
        self.withdrawals.load(Ordering::Relaxed)
    }
}

impl Budget for Counting {
    fn deposit(&self) {
        self.deposits.fetch_add(1, Ordering::Relaxed);
    }

    fn withdraw(&self) -> bool {
        self.withdrawals.fetch_add(1, Ordering::Relaxed) < self.limit
    }
}

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn failed(class: Class) -> Answer {
    Err(Failure::new(class))
}

/// Settings whose waits have no jitter: 100, 200, 400, 800, 800, … ms.
pub fn even() -> Settings {
    let backoff = Backoff::new(ms(100), ms(800), Jitter::Additive(0.0)).expect("is valid");
    Settings::new().with_backoff(backoff)
}

pub fn layer(settings: Settings) -> RetryLayer {
    RetryLayer::new(settings).expect("is valid")
}

/// A mock whose error is a [`Failure`], and what it was asked.
pub fn server() -> (Server, Handle) {
    let (mock, handle) = mock::pair::<Request, &'static str>();
    (mock.map_err(as_failure as fn(BoxError) -> Failure), handle)
}

pub fn as_failure(error: BoxError) -> Failure {
    *error
        .downcast()
        .expect("the mock is only sent failures, and outlives its service")
}

/// Calls once, and lets the server answer by this script. Panics if the call asks more
/// or less of the server than the script holds.
pub async fn run<B>(
    layer: &RetryLayer<B>,
    request: Request,
    script: impl IntoIterator<Item = Answer>,
) -> Run
where
    B: Budget + ?Sized,
{
    let (server, mut handle) = server();
    run_on(layer.layer(server), &mut handle, request, script).await
}

/// The same, on a service of the caller's.
pub async fn run_on<S>(
    service: S,
    handle: &mut Handle,
    request: Request,
    script: impl IntoIterator<Item = Answer>,
) -> Run
where
    S: Service<Request, Response = &'static str, Error = Failure>,
{
    let script: Vec<Answer> = script.into_iter().collect();
    let (start, asked, mut seen) = (Instant::now(), script.len(), Vec::new());
    let result = tokio::select! {
        biased;
        result = service.oneshot(request) => result,
        never = serve(handle, start, script, &mut seen) => match never {},
    };
    assert_eq!(seen.len(), asked, "attempts that reached the server");
    Run {
        result,
        seen,
        took: start.elapsed(),
    }
}

async fn serve(
    handle: &mut Handle,
    start: Instant,
    script: Vec<Answer>,
    seen: &mut Vec<Seen>,
) -> Infallible {
    for answer in script {
        let Some((request, reply)) = handle.next_request().await else {
            return pending().await;
        };
        let at = start.elapsed();
        seen.push(Seen { at, request });
        match answer {
            Ok(response) => reply.send_response(response),
            Err(failure) => reply.send_error(failure),
        }
    }
    if let Some((request, _)) = handle.next_request().await {
        panic!("one attempt more than the script holds: {request:?}");
    }
    pending().await
}

/// Calls once, answers from the script for as long as it is asked, and tells how often
/// that was and when the last attempt began.
pub async fn run_freely(
    layer: &RetryLayer,
    request: Request,
    script: Vec<Answer>,
) -> (u32, Duration) {
    let (server, mut handle) = server();
    let (start, mut seen) = (Instant::now(), Vec::new());
    tokio::select! {
        biased;
        _ = layer.layer(server).oneshot(request) => {}
        never = serve(&mut handle, start, script, &mut seen) => match never {},
    };
    let last = seen.last().map_or(Duration::ZERO, |seen| seen.at);
    (u32::try_from(seen.len()).expect("is small"), last)
}
