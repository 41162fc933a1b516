//! One stack over services with errors of their own.

use std::{fmt::Debug, io, time::Duration};

use steadfast::{
    Class, Classified, Effect, Failure, Sourced, Stack,
    budget::Global,
    circuit_breaker::Single,
    classify::BoxError,
    retry::{self, Backoff, Jitter},
    stack::{NoFallback, StackLayer},
};
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::ask::{Ask, Meets, Script};

type ShopStack = StackLayer<NoFallback, Global, Single>;

/// What an app does: a variant for ours beside its own.
#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("the shop is shut on sundays")]
    Sunday,
}

// === impl AppError ===

impl Classified for AppError {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Sunday => None,
        }
    }

    fn failure_mut(&mut self) -> Option<&mut Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Sunday => None,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_stack_serves_three_kinds_of_error() {
    let stack = stack();

    let plain = story(&stack, |failure| failure).await;
    let boxed = story(&stack, BoxError::from).await;
    let apps = story(&stack, AppError::from).await;

    let told = [
        "live 3 after 2",
        "unknown after 1, may have run",
        "not_sent after 3",
        "answered after 1, may have run",
        "timeout after 3, may have run",
        "rejected after 1",
    ];
    assert_eq!(plain, told);
    assert_eq!(boxed, told);
    assert_eq!(apps, told);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_nobody_classified_may_have_run() {
    let stack = stack();
    for (effect, calls) in [(Effect::NonIdempotent, 1), (Effect::ReadOnly, 3)] {
        let app = own(&stack, effect, || AppError::Sunday).await;
        assert!(
            matches!(app, (AppError::Sunday, n) if n == calls),
            "{app:?}"
        );

        let (error, n) = own(&stack, effect, || BoxError::from(io::Error::other("broke"))).await;
        assert!(error.downcast_ref::<io::Error>().is_some(), "{error}");
        assert_eq!(n, calls);
    }
}

/// The same calls on a service whose error is `E`, each told in a line.
async fn story<E>(stack: &ShopStack, into: fn(Failure) -> E) -> Vec<String>
where
    E: From<Failure> + Classified + Debug + Send + Sync + 'static,
{
    let script = Script::default();
    let shop = script.clone();
    let service = stack.layer(service_fn(move |_: Ask| {
        let attempt = shop.clone().play();
        async move { attempt.await.map_err(into) }
    }));
    let breaker = stack.breakers().unwrap().breaker();
    breaker.reset();
    let mut lines = Vec::new();
    for (effect, meets) in [
        (
            Effect::ReadOnly,
            vec![Meets::Fails(Class::Unknown), Meets::Answer(3)],
        ),
        (Effect::NonIdempotent, vec![Meets::Fails(Class::Unknown)]),
        (Effect::NonIdempotent, vec![Meets::Fails(Class::NotSent); 9]),
        (Effect::ReadOnly, vec![Meets::Fails(Class::Answered)]),
        (
            Effect::ReadOnly,
            vec![Meets::Silence, Meets::Silence, Meets::Silence],
        ),
        (Effect::ReadOnly, vec![]),
    ] {
        if meets.is_empty() {
            breaker.isolate();
        }
        script.play_next(meets);
        let before = script.attempts();
        let outcome = service.clone().oneshot(Ask::new("price", effect)).await;
        lines.push(told(&outcome, script.attempts() - before));
    }
    lines
}

fn told<E: Classified + Debug>(outcome: &Result<Sourced<u64>, E>, hits: u32) -> String {
    match outcome {
        Ok(answer) => format!("{} {} after {hits}", answer.source, answer.value),
        Err(error) => {
            let failure = error.failure().unwrap();
            let may = if failure.may_have_run() {
                ", may have run"
            } else {
                ""
            };
            format!("{} after {}{may}", failure.class(), failure.attempts())
        }
    }
}

/// One call on a service that always fails with an error that is none of ours; how often it
/// was tried.
async fn own<E>(stack: &ShopStack, effect: Effect, error: fn() -> E) -> (E, u32)
where
    E: From<Failure> + Classified + Debug + Send + Sync + 'static,
{
    let script = Script::default();
    let shop = script.clone();
    let service = stack.layer(service_fn(move |_: Ask| {
        let attempt = shop.clone().play();
        async move {
            let _ = attempt.await;
            Err::<u64, _>(error())
        }
    }));
    stack.breakers().unwrap().breaker().reset();
    let error = service
        .oneshot(Ask::new("price", effect))
        .await
        .unwrap_err();
    (error, script.attempts())
}

fn stack() -> ShopStack {
    let second = Duration::from_secs(1);
    let backoff = Backoff::new(second, second, Jitter::Additive(0.0)).unwrap();
    let twice = retry::Settings::new()
        .with_max_retries(2)
        .with_backoff(backoff);
    Stack::new("shop")
        .with_retry(twice)
        .with_retry_budget(None)
        .build()
        .unwrap()
}
