//! The three kinds of error a stack may have.

use std::fmt::Debug;

use steadfast_classify::{Class, Classified, Failure, Source};
use steadfast_fallback::{Chain, FallbackLayer, NoStore, Settings, Sourced};
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

use crate::support::{Ask, Page, page};

/// An application's own error.
#[derive(Debug)]
enum AppError {
    Tool(Failure),
    NoSuchOrder,
}

impl From<Failure> for AppError {
    fn from(failure: Failure) -> Self {
        Self::Tool(failure)
    }
}

impl Classified for AppError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Tool(failure) => Some(failure),
            Self::NoSuchOrder => None,
        }
    }
}

/// What a chain makes of this error of the inner service.
async fn recover<E>(make: fn() -> E) -> Result<Sourced<Page>, E>
where
    E: Classified + From<Failure> + Debug + Send + Sync + 'static,
{
    let chain = Chain::new(Settings::new(), NoStore::new()).unwrap();
    let inner = service_fn(move |_: Ask| async move { Err::<Page, E>(make()) });
    FallbackLayer::new(chain)
        .layer(inner)
        .oneshot(Ask::read("a").or("default"))
        .await
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_looked_into() {
    let covered = recover(|| Failure::new(Class::Timeout)).await.unwrap();
    let passed = recover(|| Failure::new(Class::Answered)).await.unwrap_err();

    assert_eq!(covered.value, tagged(Class::Timeout));
    assert_eq!(passed.class(), Class::Answered);
}

#[tokio::test(start_paused = true)]
async fn a_boxed_error_is_looked_into() {
    let covered = recover::<BoxError>(|| Failure::new(Class::Timeout).into()).await;
    let passed = recover::<BoxError>(|| Failure::new(Class::Answered).into()).await;

    assert_eq!(covered.unwrap().value, tagged(Class::Timeout));
    assert_eq!(
        passed.unwrap_err().failure().unwrap().class(),
        Class::Answered
    );
}

#[tokio::test(start_paused = true)]
async fn an_applications_error_is_looked_into() {
    let covered = recover(|| AppError::Tool(Failure::new(Class::Timeout))).await;
    let passed = recover(|| AppError::Tool(Failure::new(Class::Answered))).await;

    assert_eq!(covered.unwrap().value, tagged(Class::Timeout));
    assert!(matches!(passed, Err(AppError::Tool(failure)) if failure.class() == Class::Answered));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_error_counts_as_unknown() {
    let boxed = recover::<BoxError>(|| "who knows".into()).await.unwrap();
    let own = recover(|| AppError::NoSuchOrder).await.unwrap();

    for answer in [boxed, own] {
        assert_eq!(answer.source, Source::Degraded);
        let cause = answer.cause.unwrap();
        assert_eq!(cause.class, Class::Unknown);
        assert!(cause.may_have_run);
    }
}

fn tagged(class: Class) -> Page {
    Page {
        tags: vec![(Source::Degraded, Some(class))],
        ..page("default")
    }
}
