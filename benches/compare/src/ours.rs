//! Our stacks.

use steadfast::{
    Stack,
    circuit_breaker::{self, CircuitBreakerLayer},
    retry::RetryLayer,
    timeout::TimeoutLayer,
};
use tower::{Layer, Service, ServiceBuilder};

use crate::echo::{Contextual, OurEcho};

/// Circuit breaker alone.
pub fn breaker(echo: OurEcho) -> impl Service<Contextual> + Clone + Send + use<> {
    circuit().layer(echo)
}

/// Retry, circuit breaker, timeout.
pub fn three(echo: OurEcho) -> impl Service<Contextual> + Clone + Send + use<> {
    ServiceBuilder::new()
        .layer(RetryLayer::default())
        .layer(circuit())
        .layer(TimeoutLayer::default())
        .service(echo)
}

/// The whole stack: fallback, deadline, budget, retry, circuit breaker, timeout.
pub fn full(echo: OurEcho) -> impl Service<Contextual> + Clone + Send + use<> {
    Stack::new("full").build().unwrap().layer(echo)
}

fn circuit() -> CircuitBreakerLayer {
    CircuitBreakerLayer::new("alone", circuit_breaker::Settings::new()).unwrap()
}
