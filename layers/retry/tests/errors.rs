//! What comes out, in the words of three kinds of error.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fmt;

use steadfast_classify::{BoxError, Class, Classified, Effect, Failure};
use tower::{Layer, Service, ServiceExt};
use tower_test::mock::{self, Mock};

mod support;
use support::{Request, as_failure, even, failed, layer, run};

/// An application's own error.
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

    fn failure_mut(&mut self) -> Option<&mut Failure> {
        match self {
            Self::Tool(failure) => Some(failure),
            Self::NoSuchOrder => None,
        }
    }
}

/// A failure inside an error of somebody else.
#[derive(Debug, thiserror::Error)]
#[error("while asking the price")]
struct Wrapped(#[source] Failure);

/// Calls a service whose server always answers with this error; tells how often it was
/// called.
async fn call<S>(
    wrap: impl FnOnce(Mock<Request, ()>) -> S,
    effect: Effect,
    answer: impl Fn() -> BoxError,
) -> (S::Error, u32)
where
    S: Service<Request, Response = ()> + Clone,
    S::Error: Classified + fmt::Debug + Send + Sync + 'static,
{
    let (mock, mut handle) = mock::pair::<Request, ()>();
    let service = layer(even()).layer(wrap(mock));
    let server = async {
        let mut count = 0;
        while let Some((_, reply)) = handle.next_request().await {
            count += 1;
            reply.send_error(answer());
        }
        count
    };
    let (result, count) = tokio::join!(service.oneshot(Request::new(effect)), server);
    (result.unwrap_err(), count)
}

fn not_sent() -> BoxError {
    Failure::new(Class::NotSent).into()
}

fn as_app_error(error: BoxError) -> AppError {
    match error.downcast::<Failure>() {
        Ok(failure) => AppError::Tool(*failure),
        Err(_) => AppError::NoSuchOrder,
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_comes_out_as_itself_with_its_attempts() {
    let wrap = |mock: Mock<_, _>| mock.map_err(as_failure as fn(BoxError) -> Failure);

    let (failure, count) = call(wrap, Effect::NonIdempotent, not_sent).await;

    assert_eq!((failure.attempts(), count), (4, 4));
    assert!(!failure.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn trap_t6_a_boxed_failure_comes_out_as_the_same_type_with_its_attempts() {
    let (error, count) = call(|mock| mock, Effect::NonIdempotent, not_sent).await;

    let failure = error.downcast::<Failure>().unwrap();
    assert_eq!((failure.attempts(), count), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_failure_inside_another_error_decides_and_is_left_as_it_is() {
    let wrapped = || Wrapped(Failure::new(Class::NotSent)).into();

    let (error, count) = call(|mock| mock, Effect::NonIdempotent, wrapped).await;

    assert_eq!(count, 4);
    assert_eq!(error.to_string(), "while asking the price");
    let inside = error.source().unwrap().downcast_ref::<Failure>().unwrap();
    assert_eq!(
        inside.attempts(),
        1,
        "nobody can write into another's error"
    );
}

#[tokio::test(start_paused = true)]
async fn an_applications_own_error_comes_out_as_itself_with_its_attempts() {
    let wrap = |mock: Mock<_, _>| mock.map_err(as_app_error as fn(BoxError) -> AppError);

    let (error, count) = call(wrap, Effect::NonIdempotent, not_sent).await;
    assert_eq!(count, 4);
    assert_eq!(error.failure().unwrap().attempts(), 4);

    let foreign = || "whatever".into();
    let (error, count) = call(wrap, Effect::NonIdempotent, foreign).await;
    assert_eq!(count, 1);
    assert!(matches!(error, AppError::NoSuchOrder));
}

#[tokio::test(start_paused = true)]
async fn that_it_may_have_run_is_not_forgotten_by_a_later_attempt() {
    let script = [
        failed(Class::NotSent),
        failed(Class::Unknown),
        failed(Class::NotSent),
        failed(Class::Overloaded),
    ];

    let run = run(&layer(even()), Request::read(), script).await;

    assert_eq!(
        run.failure().class(),
        Class::Overloaded,
        "of the last attempt"
    );
    assert!(run.failure().may_have_run(), "of the whole call");
}

#[tokio::test(start_paused = true)]
async fn that_it_did_not_run_stays_a_proof_over_all_attempts() {
    let script = [
        failed(Class::NotSent),
        failed(Class::Overloaded),
        failed(Class::NotSent),
        failed(Class::Rejected),
    ];

    let run = run(&layer(even()), Request::write(), script).await;

    assert!(!run.failure().may_have_run());
    assert_eq!(run.failure().attempts(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_error_before_the_last_attempt_may_have_run() {
    let (mock, mut handle) = mock::pair::<Request, ()>();
    let service = layer(even().with_max_retries(1)).layer(mock);
    let server = async {
        let (_, first) = handle.next_request().await.unwrap();
        first.send_error("whatever");
        let (_, second) = handle.next_request().await.unwrap();
        second.send_error(Failure::new(Class::NotSent));
    };

    let (result, ()) = tokio::join!(service.oneshot(Request::read()), server);

    let failure = result.unwrap_err().downcast::<Failure>().unwrap();
    assert!(failure.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_retry_inside_a_retry_add_up() {
    let (server, mut handle) = support::server();
    let inner = layer(even().with_max_retries(1)).layer(server);
    let outer = layer(even().with_max_retries(2)).layer(inner);
    let script = vec![failed(Class::NotSent); 6];

    let run = support::run_on(outer, &mut handle, Request::write(), script).await;

    assert_eq!(run.failure().attempts(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_others_hold_too_is_not_changed_under_them() {
    let shared = Failure::new(Class::NotSent);
    let script = vec![Err(shared.clone()); 4];

    let run = run(&layer(even()), Request::write(), script).await;

    assert_eq!(run.failure().attempts(), 4);
    assert_eq!(shared.attempts(), 1);
}
