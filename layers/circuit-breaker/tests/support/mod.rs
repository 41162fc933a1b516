//! A circuit in front of a scripted server.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{task::Poll, time::Duration};

use steadfast_circuit_breaker::{Breaker, CircuitBreaker, CircuitBreakerLayer, Settings};
use steadfast_classify::{BoxError, Class, Failure};
use tokio_test::{assert_ready_ok, task, task::Spawn};
use tower_layer::Layer;
use tower_test::mock::{
    self, Handle, Mock, SendResponse, Spawn as Ready, future::ResponseFuture as Inner,
};

pub(crate) type Server = Mock<&'static str, &'static str>;
pub(crate) type Response =
    Spawn<steadfast_circuit_breaker::ResponseFuture<Inner<&'static str>, BoxError>>;

/// A circuit named `server` in front of a scripted server.
pub(crate) struct Circuit {
    pub(crate) layer: CircuitBreakerLayer,
    pub(crate) service: CircuitBreaker<Server>,
    pub(crate) handle: Handle<&'static str, &'static str>,
}

/// A call that reached the server.
pub(crate) struct Running {
    pub(crate) response: Response,
    server: SendResponse<&'static str>,
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn failure(class: Class) -> Failure {
    Failure::new(class)
}

/// What failed, as the failure it must be.
pub(crate) fn unbox(error: BoxError) -> Failure {
    *error.downcast::<Failure>().expect("a failure")
}

// === impl Circuit ===

impl Circuit {
    pub(crate) fn new(settings: Settings) -> Self {
        let layer = CircuitBreakerLayer::new("server", settings).expect("settings are valid");
        let (server, handle) = mock::pair();
        Self {
            service: layer.layer(server),
            layer,
            handle,
        }
    }

    /// One that has opened by five failures in a row.
    pub(crate) async fn opened(settings: Settings) -> Self {
        let mut circuit = Self::new(settings);
        circuit.fail(5, Class::Unknown).await;
        circuit
    }

    pub(crate) fn breaker(&self) -> &Breaker {
        self.layer.breaker()
    }

    /// Begins a call on a clone of the service.
    pub(crate) fn begin(&mut self) -> Result<Running, Failure> {
        self.handle.allow(1);
        let mut service = Ready::new(self.service.clone());
        assert_ready_ok!(service.poll_ready());
        let mut response = task::spawn(service.call("ping"));
        match self.handle.poll_request() {
            Poll::Ready(request) => {
                let (_, server) = request.expect("the service is there");
                assert!(response.poll().is_pending());
                Ok(Running { response, server })
            }
            Poll::Pending => match response.poll() {
                Poll::Ready(result) => Err(unbox(result.expect_err("nobody answered"))),
                Poll::Pending => panic!("neither sent nor turned away"),
            },
        }
    }

    /// A call that must reach the server.
    pub(crate) fn passes(&mut self) -> Running {
        self.begin().expect("it passes")
    }

    /// A call that must be turned away.
    pub(crate) fn rejected(&mut self) -> Failure {
        match self.begin() {
            Ok(_) => panic!("it passed"),
            Err(failure) => {
                assert_eq!(failure.class(), Class::Rejected);
                assert!(failure.is_circuit_open());
                failure
            }
        }
    }

    pub(crate) async fn succeed(&mut self, times: usize) {
        for _ in 0..times {
            self.passes().answers().await;
            // Else the runtime makes ready things wait once a test has done much.
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn fail(&mut self, times: usize, class: Class) {
        for _ in 0..times {
            self.passes().fails(failure(class)).await;
            tokio::task::yield_now().await;
        }
    }
}

// === impl Running ===

impl Running {
    pub(crate) async fn answers(self) {
        self.server.send_response("pong");
        assert_eq!(self.response.await.expect("it succeeds"), "pong");
    }

    /// The failure as the caller gets it.
    pub(crate) async fn fails(self, failure: Failure) -> Failure {
        unbox(self.fails_with(failure).await)
    }

    pub(crate) async fn fails_with(self, error: impl Into<BoxError>) -> BoxError {
        self.server.send_error(error);
        self.response.await.expect_err("it fails")
    }
}
