//! Faults that people reported, at the level of this layer.

mod support;

use steadfast_circuit_breaker::{CircuitBreakerLayer, Settings, State};
use steadfast_classify::{Class, Failure};
use support::{Circuit, failure};
use tower::{Layer, ServiceExt, service_fn};

/// What a tool answers.
#[derive(Debug, PartialEq)]
struct Answer {
    is_error: bool,
}

/// What the wire makes of an answer, as the classification says.
fn wire(reply: i32) -> Result<Answer, Failure> {
    match reply {
        200 => Ok(Answer { is_error: false }),
        // A tool that reports an error of its own has answered.
        201 => Ok(Answer { is_error: true }),
        -32700..=-32000 => Err(failure(Class::Answered)),
        401 | 403 => Err(failure(Class::Answered)),
        _ => Err(failure(Class::Unknown)),
    }
}

/// Three "not found" results, and the whole server is unreachable for a minute.
#[tokio::test(start_paused = true)]
async fn g01_layers_ordinary_tool_errors_do_not_open_the_circuit() {
    let settings = Settings::new().with_consecutive_failures(3);
    let layer = CircuitBreakerLayer::new("server", settings).unwrap();
    let service = layer.layer(service_fn(|reply| async move { wire(reply) }));
    let good = [200; 5].as_slice();
    let replies = [
        [201; 10].as_slice(),
        &[-32602; 10],
        good,
        &[0, 0, 201, 0, 0],
        good,
    ];

    for (n, reply) in replies.concat().into_iter().enumerate() {
        let result = service.clone().oneshot(reply).await;

        let want = wire(reply).map_err(|failure| failure.class());
        let got = result.map_err(|failure| failure.class());
        assert_eq!(got, want, "call {n}");
        assert_eq!(layer.breaker().state(), State::Closed, "call {n}");
    }
}

/// A completed round trip resets the count, also one that ends in a JSON-RPC error.
#[tokio::test(start_paused = true)]
async fn g01_layers_an_answered_error_ends_a_run_of_failures() {
    let mut circuit = Circuit::new(Settings::new().with_consecutive_failures(3));

    circuit.fail(2, Class::Unknown).await;
    circuit.fail(1, Class::Answered).await;

    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 0);
}

/// A 503 after a good start reaches the caller, soon, and is counted.
#[tokio::test(start_paused = true)]
async fn a03_layers_a_5xx_is_counted_and_reaches_the_caller_below_the_threshold() {
    let settings = Settings::new().with_consecutive_failures(10);
    let layer = CircuitBreakerLayer::new("server", settings).unwrap();
    let service = layer.layer(service_fn(|reply| async move { wire(reply) }));

    for n in 1..=3 {
        let failure = service.clone().oneshot(503).await.unwrap_err();
        assert_eq!(failure.class(), Class::Unknown);
        assert!(!failure.is_circuit_open());
        assert_eq!(layer.breaker().snapshot().consecutive_failures, n);
    }
    let answer = service.oneshot(200).await;

    assert_eq!(answer.unwrap(), Answer { is_error: false });
    assert_eq!(layer.breaker().snapshot().consecutive_failures, 0);
}

/// A credential error is the server's answer: it does not open the circuit.
#[tokio::test(start_paused = true)]
async fn e05_layers_an_old_token_does_not_open_the_circuit() {
    let layer = CircuitBreakerLayer::new("server", Settings::new()).unwrap();
    let service = layer.layer(service_fn(|reply| async move { wire(reply) }));

    for _ in 0..20 {
        let failure = service.clone().oneshot(401).await.unwrap_err();
        assert_eq!(failure.class(), Class::Answered);
    }

    assert_eq!(layer.breaker().state(), State::Closed);
}

/// A 429 was refused before it ran: the circuit is untouched.
#[tokio::test(start_paused = true)]
async fn h01_layers_a_429_leaves_a_closed_circuit_alone() {
    let mut circuit = Circuit::new(Settings::new());

    circuit.fail(4, Class::Unknown).await;
    circuit.fail(20, Class::Overloaded).await;

    assert_eq!(circuit.breaker().state(), State::Closed);
    assert_eq!(circuit.breaker().snapshot().consecutive_failures, 4);
}
