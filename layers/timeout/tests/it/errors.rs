//! One layer, three kinds of error.

use std::future::pending;

use steadfast_classify::{BoxError, Class, Classified, Failure};
use steadfast_timeout::{DeadlineLayer, Elapsed, TimeoutLayer};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::wire::Ping;

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Tool(#[from] Failure),
    #[error("no such order")]
    NoSuchOrder,
}

#[tokio::test(start_paused = true)]
async fn a_failure_comes_as_it_is() {
    let failure = hangs::<Failure>().await;

    assert_eq!(failure.class(), Class::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_boxed_error_holds_the_failure() {
    let error = hangs::<BoxError>().await;

    assert_eq!(error.failure().unwrap().class(), Class::Timeout);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_application_wraps_the_failure() {
    let AppError::Tool(failure) = hangs::<AppError>().await else {
        panic!("a timeout is not a missing order");
    };

    assert!(failure.find_source::<Elapsed>().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_application_passes() {
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(TimeoutLayer::default())
        .service(service_fn(|_: Ping| async {
            Err::<(), _>(AppError::NoSuchOrder)
        }));

    let error = service.oneshot(Ping("order")).await.unwrap_err();

    assert!(matches!(error, AppError::NoSuchOrder));
}

/// The error of a call that hangs, in a stack with errors of this type.
async fn hangs<E: From<Failure>>() -> E {
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(TimeoutLayer::default())
        .service(service_fn(|_: Ping| pending::<Result<(), E>>()));
    match service.oneshot(Ping("hang")).await {
        Ok(()) => panic!("it hangs"),
        Err(error) => error,
    }
}
