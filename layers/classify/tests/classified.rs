//! One layer over three kinds of error, and the layer that classifies.

use std::{io, time::Duration};

use steadfast_classify::{
    BoxError, CallContext, Class, Classified, ClassifyLayer, Effect, Failure, Flight, Limits, Phase,
};
use tokio::time::Instant;
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::layer::Layer as _;
use tower_test::{assert_request_eq, mock};

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Tool(#[from] Failure),
    #[error("no such order")]
    NoSuchOrder,
}

impl Classified for AppError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Tool(failure) => Some(failure),
            Self::NoSuchOrder => None,
        }
    }
}

/// What a layer does with the errors of the service it is around, whatever their type.
fn class_of<E: From<Failure> + Classified>(error: &E) -> Class {
    error.failure().map_or(Class::Unknown, Failure::class)
}

fn timeout() -> Failure {
    Failure::new(Class::Timeout).with_phase(Phase::Read)
}

#[test]
fn a_failure_is_found_in_each_of_three_error_types() {
    assert_eq!(class_of::<Failure>(&timeout()), Class::Timeout);
    assert_eq!(class_of::<BoxError>(&timeout().into()), Class::Timeout);
    assert_eq!(class_of::<AppError>(&timeout().into()), Class::Timeout);
}

#[test]
fn a_foreign_error_is_an_unknown_outcome() {
    assert_eq!(class_of::<BoxError>(&"broken".into()), Class::Unknown);
    assert_eq!(class_of::<AppError>(&AppError::NoSuchOrder), Class::Unknown);
}

#[test]
fn a_boxed_failure_is_found_below_other_errors() {
    let wrapped: BoxError = Box::new(AppError::from(timeout()));
    assert!(
        wrapped.failure().is_none(),
        "transparent: its source is the failure's source"
    );

    let io: BoxError = Box::new(io::Error::other(timeout()));
    assert_eq!(
        class_of(&io),
        Class::Unknown,
        "io::Error hides what it was made of"
    );

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Failure);
    let outer: BoxError = Box::new(Outer(timeout()));
    assert_eq!(class_of(&outer), Class::Timeout);
}

#[test]
fn notes_reach_a_failure_that_is_not_wrapped() {
    let mut error: BoxError = timeout().into();
    error.failure_mut().unwrap().set_attempts(2);
    assert_eq!(error.failure().unwrap().attempts(), 2);
}

#[test]
fn a_context_is_small_and_a_clone_is_another_attempt() {
    assert!(
        size_of::<CallContext>() <= 72,
        "{}",
        size_of::<CallContext>()
    );
    let mut context = CallContext::tracked();
    context.set_flight(Flight::new());
    context.set_limits(Limits::new().with_max_retries(1).into());

    let next = context.clone();

    assert!(context.flight().is_some());
    assert!(next.flight().is_none(), "a flight proves one attempt");
    assert!(next.is_tracked());
    assert_eq!(next.limits(), context.limits());
}

#[test]
fn a_deadline_can_only_be_moved_up() {
    let start = Instant::now();
    let mut context = CallContext::new();

    context.cap_deadline(start + Duration::from_secs(5));
    context.cap_deadline(start + Duration::from_secs(9));
    assert_eq!(context.deadline(), Some(start + Duration::from_secs(5)));

    context.cap_deadline(start + Duration::from_secs(1));
    assert_eq!(context.deadline(), Some(start + Duration::from_secs(1)));
}

#[test]
fn limits_of_the_call_go_before_others() {
    let own = Limits::new().with_read(Duration::from_secs(1));
    let other = Limits::new()
        .with_read(Duration::from_secs(9))
        .with_max_retries(0);
    assert_eq!(
        own.or(&other),
        Limits::new()
            .with_read(Duration::from_secs(1))
            .with_max_retries(0)
    );
}

#[test]
fn nothing_said_is_the_safe_effect() {
    struct Request;
    impl steadfast_classify::Call for Request {}
    assert_eq!(
        steadfast_classify::Call::effect(&Request),
        Effect::NonIdempotent
    );
}

#[tokio::test]
async fn the_layer_judges_successes_and_errors() {
    let layer = ClassifyLayer::new(|result: Result<&'static str, BoxError>| match result {
        Ok("busy") => Err(Failure::new(Class::Overloaded)),
        Ok(answer) => Ok(answer.len()),
        Err(error) => Err(Failure::new(Class::Unknown).with_source(error)),
    });
    let (mut service, mut handle) =
        mock::spawn_with::<&str, &str, _, _>(|inner| layer.layer(inner));

    for (answer, want) in [
        (Ok("fine"), Ok(4)),
        (Ok("busy"), Err(Class::Overloaded)),
        (Err("broken"), Err(Class::Unknown)),
    ] {
        assert_ready_ok!(service.poll_ready());
        let mut response = task::spawn(service.call("ping"));
        assert_pending!(response.poll());
        let request = assert_request_eq!(handle, "ping");
        match answer {
            Ok(answer) => request.send_response(answer),
            Err(error) => request.send_error(error),
        }
        assert_eq!(response.await.map_err(|failure| failure.class()), want);
    }
}

#[tokio::test]
async fn an_error_of_readiness_was_not_sent() {
    let layer = ClassifyLayer::new(|result: Result<&'static str, BoxError>| {
        result.map_err(|error| Failure::new(Class::Unknown).with_source(error))
    });
    let (mut service, mut handle) =
        mock::spawn_with::<&str, &str, _, _>(|inner| layer.layer(inner));
    handle.send_error("no room");

    let failure = assert_ready_err!(service.poll_ready());

    assert_eq!(failure.class(), Class::NotSent);
    assert!(!failure.may_have_run());
    assert_eq!(failure.phase(), Some(Phase::Connect));
}
