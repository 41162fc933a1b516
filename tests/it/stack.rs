//! The stack in one line, and the same by hand.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use steadfast::{
    Class, Effect, Failure, Phase, Source, Sourced, Stack,
    budget::{BudgetLayer, Global, Limit, RetryBudget, RetryBudgetSettings},
    circuit_breaker::{self, CircuitBreakerLayer},
    fallback::FallbackLayer,
    retry::{self, Backoff, Jitter, RetryLayer},
    timeout::{self, DeadlineLayer, TimeoutLayer},
};
use tokio::time::{Instant, advance};
use tower::{Layer as _, Service, ServiceBuilder, ServiceExt as _, util::BoxCloneService};

use crate::ask::{Ask, Meets, Script, last_good};

type Shop = BoxCloneService<Ask, Sourced<u64>, Failure>;

/// What both stacks are made from.
#[derive(Clone)]
struct Settings {
    timeout: timeout::Settings,
    total: Duration,
    retry: retry::Settings,
    retry_budget: RetryBudgetSettings,
    breaker: circuit_breaker::Settings,
    limit: &'static str,
    max_wait: Duration,
}

/// All that a caller sees of one call, and what the server saw of it.
#[derive(Debug, PartialEq)]
struct Seen {
    about: &'static str,
    source: Result<Source, Class>,
    value: Option<u64>,
    class: Option<Class>,
    phase: Option<Phase>,
    layer: Option<&'static str>,
    attempts: Option<u32>,
    may_have_run: Option<bool>,
    retry_in: Option<Duration>,
    took: Duration,
    hits: u32,
}

/// One call: how long its caller thinks before it, and what its attempts meet.
type Line = (u64, &'static str, Effect, Vec<Meets>);

#[tokio::test(start_paused = true)]
async fn stack_by_hand_behaves_like_stack() {
    let mut all = Vec::new();
    for settings in [defaults(), quick()] {
        let (by_stack, by_hand) = (Script::default(), Script::default());
        let in_one_line = in_one_line(&settings, by_stack.clone());
        let one_by_one = one_by_one(&settings, by_hand.clone());

        let left = live(in_one_line, &by_stack).await;
        let right = live(one_by_one, &by_hand).await;

        for (left, right) in left.iter().zip(&right) {
            assert_eq!(left, right);
        }
        all.extend(left);
    }
    everything_happened(&all);
}

/// Without that, two stacks that do nothing would be alike.
fn everything_happened(seen: &[Seen]) {
    let sources: BTreeSet<_> = seen
        .iter()
        .map(|seen| match seen.source {
            Ok(source) => source.as_str(),
            Err(class) => class.as_str(),
        })
        .collect();
    let all = [
        "answered",
        "cache",
        "live",
        "not_sent",
        "overloaded",
        "rejected",
        "timeout",
        "unknown",
    ];
    assert_eq!(sources, BTreeSet::from(all), "{seen:#?}");
    let out_of_time = |seen: &Seen| seen.phase == Some(Phase::Total);
    assert!(seen.iter().any(out_of_time), "no call ran out of time");
    let layers: BTreeSet<_> = seen.iter().filter_map(|seen| seen.layer).collect();
    let all = ["budget", "circuit breaker", "timeout"];
    assert_eq!(layers, BTreeSet::from(all), "{seen:#?}");
    assert!(
        seen.iter().any(|seen| seen.hits > 1),
        "no call was repeated"
    );
    assert!(
        seen.iter().any(|seen| seen.hits == 0),
        "no call was turned away"
    );
}

async fn live(shop: Shop, script: &Script) -> Vec<Seen> {
    let mut seen = Vec::new();
    for (think, about, effect, lines) in day() {
        advance(Duration::from_secs(think)).await;
        script.play_next(lines);
        seen.push(one_call(shop.clone(), script, Ask::new(about, effect)).await);
    }
    seen
}

async fn one_call(shop: Shop, script: &Script, ask: Ask) -> Seen {
    let (about, before, begun) = (ask.about, script.attempts(), Instant::now());
    let outcome = shop.oneshot(ask).await;
    let (took, hits) = (begun.elapsed(), script.attempts() - before);
    let (cause, failure) = match &outcome {
        Ok(answer) => (answer.cause.as_ref(), None),
        Err(failure) => (None, Some(failure)),
    };
    Seen {
        about,
        source: outcome
            .as_ref()
            .map(|answer| answer.source)
            .map_err(Failure::class),
        value: outcome.as_ref().ok().map(|answer| answer.value),
        class: cause
            .map(|cause| cause.class)
            .or(failure.map(Failure::class)),
        phase: cause.map_or(failure.and_then(Failure::phase), |cause| cause.phase),
        layer: failure.and_then(|failure| failure.origin().layer),
        attempts: cause
            .map(|cause| cause.attempts)
            .or(failure.map(Failure::attempts)),
        may_have_run: cause
            .map(|cause| cause.may_have_run)
            .or(failure.map(Failure::may_have_run)),
        retry_in: failure.and_then(Failure::retry_in),
        took,
        hits,
    }
}

fn day() -> Vec<Line> {
    use Effect::{Idempotent, NonIdempotent, ReadOnly};
    use Meets::{Answer, Busy, Fails, Silence};

    let down = || vec![Fails(Class::NotSent); 10];
    let asked = Duration::from_secs(2);
    vec![
        (0, "price", ReadOnly, vec![Answer(1)]),
        (0, "order", NonIdempotent, vec![Answer(2)]),
        (1, "price", ReadOnly, vec![Fails(Class::Unknown), Answer(3)]),
        (
            1,
            "order",
            NonIdempotent,
            vec![Fails(Class::NotSent), Answer(4)],
        ),
        (1, "order", NonIdempotent, vec![Fails(Class::Unknown)]),
        (1, "order", NonIdempotent, vec![Silence]),
        (1, "stock", Idempotent, vec![Silence, Silence, Answer(5)]),
        (1, "stock", Idempotent, vec![Silence; 10]),
        (1, "stock", Idempotent, vec![Answer(5)]),
        (1, "order", NonIdempotent, vec![Busy(asked), Answer(6)]),
        (
            1,
            "order",
            NonIdempotent,
            vec![Busy(Duration::from_secs(60))],
        ),
        (1, "price", ReadOnly, vec![Fails(Class::Answered)]),
        (1, "price", ReadOnly, vec![Answer(7)]),
        (1, "order", NonIdempotent, down()),
        (1, "price", ReadOnly, down()),
        (1, "price", ReadOnly, down()),
        (1, "order", NonIdempotent, down()),
        // The probe fails, and the next one does not.
        (31, "price", ReadOnly, down()),
        (1, "order", NonIdempotent, down()),
        (31, "price", ReadOnly, vec![Answer(8)]),
        (
            1,
            "price",
            ReadOnly,
            vec![Fails(Class::Timeout), Fails(Class::Unknown), Answer(9)],
        ),
        // Admitted by their budget, and then no more.
        (0, "order", NonIdempotent, vec![Answer(10)]),
        (0, "order", NonIdempotent, vec![Answer(11)]),
        (0, "order", NonIdempotent, vec![Answer(12)]),
        (0, "order", NonIdempotent, vec![Answer(13)]),
        (0, "price", ReadOnly, vec![Answer(14)]),
        (60, "price", ReadOnly, vec![Answer(15)]),
    ]
}

fn in_one_line(settings: &Settings, shop: Script) -> Shop {
    let settings = settings.clone();
    let stack = Stack::new("shop")
        .with_timeout(settings.timeout)
        .with_total(settings.total)
        .with_retry(settings.retry)
        .with_retry_budget(settings.retry_budget)
        .with_breaker("shop", settings.breaker)
        .with_admission(Global::new(limit(settings.limit)))
        .with_max_wait(settings.max_wait)
        .with_fallback(last_good())
        .build()
        .unwrap();
    boxed(stack.layer(shop))
}

/// As the documentation of the stack shows it.
fn one_by_one(settings: &Settings, shop: Script) -> Shop {
    let settings = settings.clone();
    let retries = Arc::new(RetryBudget::new(settings.retry_budget).unwrap());
    let service = ServiceBuilder::new()
        .layer(FallbackLayer::new(last_good()))
        .layer(DeadlineLayer::new(settings.total).unwrap().stamp_only())
        .layer(
            BudgetLayer::new(Global::new(limit(settings.limit))).with_max_wait(settings.max_wait),
        )
        .layer(
            RetryLayer::new(settings.retry)
                .unwrap()
                .with_budget(retries),
        )
        .layer(CircuitBreakerLayer::new("shop", settings.breaker).unwrap())
        .layer(TimeoutLayer::new(settings.timeout).unwrap())
        .service(shop);
    boxed(service)
}

fn boxed<S>(service: S) -> Shop
where
    S: Service<Ask, Response = Sourced<u64>, Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    BoxCloneService::new(service)
}

/// The defaults, but for the jitter: it would make no two runs alike.
fn defaults() -> Settings {
    let backoff = Backoff::new(
        Duration::from_millis(500),
        Duration::from_secs(8),
        Jitter::Additive(0.0),
    );
    Settings {
        timeout: timeout::Settings::new(),
        total: Duration::from_secs(300),
        retry: retry::Settings::new().with_backoff(backoff.unwrap()),
        retry_budget: RetryBudgetSettings::new(),
        breaker: circuit_breaker::Settings::new(),
        limit: "1/h burst 23",
        max_wait: Duration::ZERO,
    }
}

fn quick() -> Settings {
    let backoff = Backoff::new(
        Duration::from_millis(50),
        Duration::from_millis(100),
        Jitter::Additive(0.0),
    );
    Settings {
        timeout: timeout::Settings::new()
            .with_connect(Duration::from_millis(100))
            .with_read(Duration::from_secs(2)),
        total: Duration::from_secs(5),
        retry: retry::Settings::new()
            .with_max_retries(2)
            .with_backoff(backoff.unwrap()),
        breaker: circuit_breaker::Settings::new().with_consecutive_failures(5),
        limit: "30/min burst 4",
        max_wait: Duration::from_millis(1500),
        ..defaults()
    }
}

fn limit(quota: &str) -> Limit {
    Limit::new("the shop's", quota.parse().unwrap())
}
