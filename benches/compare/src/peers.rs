//! The stacks of other crates, each as its own documentation puts it together.

use std::{
    future::Future,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use failsafe::futures::CircuitBreaker as _;
use recloser::{AsyncRecloser, Recloser};
use tokio::time::Sleep;
use tower::{
    Layer, Service, ServiceBuilder,
    retry::{
        Policy,
        backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff},
        budget::{Budget, TpsBudget},
    },
    util::rng::HasherRng,
};
use tower_resilience::{
    circuitbreaker::CircuitBreakerLayer, fallback::FallbackLayer, retry::RetryLayer,
    timelimiter::TimeLimiterLayer,
};

use crate::echo::{Answer, Never, Plain, TheirEcho};

/// tower: concurrency limit, retry, timeout.
pub fn tower(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    ServiceBuilder::new()
        .concurrency_limit(1024)
        .retry(Retries::new())
        .timeout(Duration::from_secs(60))
        .service(echo)
}

/// tower-resilience: retry, circuit breaker, time limiter.
pub fn resilience(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    ServiceBuilder::new()
        .layer(RetryLayer::exponential_backoff().build())
        .layer(CircuitBreakerLayer::standard().build().unwrap())
        .layer(limiter(10))
        .service(echo)
}

/// tower-resilience: the "full stack (with fallback)" of its documentation.
pub fn resilience_full(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    ServiceBuilder::new()
        .layer(FallbackLayer::value(0))
        .layer(limiter(30))
        .layer(RetryLayer::exponential_backoff().build())
        .layer(CircuitBreakerLayer::standard().build().unwrap())
        .layer(limiter(10))
        .service(echo)
}

/// tower-resilience: circuit breaker alone.
pub fn resilience_breaker(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    let layer = CircuitBreakerLayer::standard().build().unwrap();
    layer.layer(echo)
}

/// failsafe: circuit breaker.
pub fn failsafe(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    let breaker = failsafe::Config::new().build();
    Guarded {
        echo,
        guard: move |answer| breaker.call(answer),
    }
}

/// recloser: circuit breaker.
pub fn recloser(echo: TheirEcho) -> impl Service<Plain> + Clone + Send + use<> {
    let breaker = AsyncRecloser::from(Recloser::default());
    Guarded {
        echo,
        guard: move |answer| breaker.call(answer),
    }
}

fn limiter(seconds: u64) -> tower_resilience::timelimiter::TimeLimiterLayer {
    TimeLimiterLayer::builder()
        .timeout_duration(Duration::from_secs(seconds))
        .build()
}

/// A circuit breaker that knows futures and no services: `guard` puts it around an answer.
#[derive(Clone)]
struct Guarded<G> {
    echo: TheirEcho,
    guard: G,
}

/// What tower leaves to its users: at most three retries, exponential backoff, and the
/// budget.
#[derive(Clone)]
struct Retries {
    left: u32,
    backoff: ExponentialBackoff,
    budget: Arc<TpsBudget>,
}

// === impl Guarded ===

impl<G, F, E> Service<Plain> for Guarded<G>
where
    G: FnMut(Answer<Never>) -> F,
    F: Future<Output = Result<u64, E>>,
{
    type Response = u64;
    type Error = E;
    type Future = F;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Plain) -> F {
        (self.guard)(self.echo.call(request))
    }
}

// === impl Retries ===

impl Retries {
    fn new() -> Self {
        let mut backoff = ExponentialBackoffMaker::new(
            Duration::from_millis(500),
            Duration::from_secs(8),
            0.2,
            HasherRng::new(),
        )
        .unwrap();
        Self {
            left: 3,
            backoff: backoff.make_backoff(),
            budget: Arc::new(TpsBudget::new(Duration::from_secs(10), 10, 0.2)),
        }
    }
}

impl<R: Clone, T, E> Policy<R, T, E> for Retries {
    type Future = Sleep;

    fn retry(&mut self, _: &mut R, result: &mut Result<T, E>) -> Option<Sleep> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        self.budget.withdraw().then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &R) -> Option<R> {
        Some(request.clone())
    }
}
