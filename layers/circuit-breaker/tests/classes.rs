//! What each class of failure does to a circuit.

mod support;

use std::{fmt, time::Duration};

use steadfast_circuit_breaker::{CircuitBreakerLayer, Settings, State};
use steadfast_classify::{BoxError, Class, Classified, Failure, Phase};
use support::{Circuit, failure, millis, secs};
use tokio::time::advance;
use tower::{Layer, ServiceExt, service_fn};

/// What a failure does: to four failures in a row before it, and to a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// The fifth; fails a probe.
    Fail,
    /// Ends the run; a probe succeeds.
    Succeed,
    /// Neither adds to the run nor ends it; fails a probe.
    Refuse,
    /// Nothing; a probe's place is free again.
    Nothing,
}

/// Every class, and what changes how it counts.
fn table() -> Vec<(Failure, Does)> {
    let total = |class| failure(class).with_phase(Phase::Total);
    let held = |class| failure(class).with_phase(Phase::Held);
    vec![
        (failure(Class::NotSent), Does::Fail),
        (
            failure(Class::NotSent).with_phase(Phase::Connect),
            Does::Fail,
        ),
        (failure(Class::NotSent).with_permanent(), Does::Nothing),
        (total(Class::NotSent), Does::Nothing),
        (total(Class::NotSent).with_elapsed(secs(1)), Does::Fail),
        (held(Class::NotSent).with_elapsed(secs(60)), Does::Nothing),
        (
            failure(Class::NotSent).with_phase(Phase::Session),
            Does::Nothing,
        ),
        (failure(Class::Overloaded), Does::Refuse),
        (failure(Class::Timeout), Does::Fail),
        (failure(Class::Timeout).with_phase(Phase::Read), Does::Fail),
        (
            failure(Class::Timeout).with_phase(Phase::Attempt),
            Does::Fail,
        ),
        (total(Class::Timeout), Does::Nothing),
        (
            total(Class::Timeout).with_elapsed(millis(999)),
            Does::Nothing,
        ),
        (total(Class::Timeout).with_elapsed(millis(1000)), Does::Fail),
        (held(Class::Timeout).with_elapsed(secs(60)), Does::Nothing),
        (failure(Class::Unknown), Does::Fail),
        (failure(Class::Answered), Does::Succeed),
        (failure(Class::Answered).with_permanent(), Does::Succeed),
        (failure(Class::Rejected), Does::Nothing),
        (failure(Class::Cancelled), Does::Nothing),
    ]
}

async fn in_a_closed_circuit(settings: Settings, failure: Failure) -> Does {
    let mut circuit = Circuit::new(settings);
    circuit.fail(4, Class::Unknown).await;
    circuit.passes().fails(failure).await;
    match circuit.breaker().state() {
        State::Open => return Does::Fail,
        state => assert_eq!(state, State::Closed),
    }
    match circuit.breaker().snapshot().consecutive_failures {
        0 => Does::Succeed,
        4 => Does::Nothing,
        run => panic!("{run} in a row"),
    }
}

async fn as_a_probe(settings: Settings, failure: Failure) -> Does {
    let mut circuit = Circuit::opened(settings).await;
    advance(secs(30)).await;
    circuit.passes().fails(failure).await;
    match circuit.breaker().state() {
        State::Open => Does::Fail,
        State::Closed => Does::Succeed,
        _ => {
            assert!(!circuit.breaker().snapshot().probing);
            circuit.succeed(1).await;
            assert_eq!(circuit.breaker().state(), State::Closed);
            Does::Nothing
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_class_counts_as_the_table_says() {
    for (failure, does) in table() {
        let (closed, probe) = match does {
            Does::Refuse => (Does::Nothing, Does::Fail),
            does => (does, does),
        };
        let got = in_a_closed_circuit(Settings::new(), failure.clone()).await;
        assert_eq!(got, closed, "{failure:?} in a closed circuit");
        let got = as_a_probe(Settings::new(), failure.clone()).await;
        assert_eq!(got, probe, "{failure:?} as a probe");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_error_counts_if_the_settings_say_so() {
    let settings = || Settings::new().with_count_answered(true);

    let closed = in_a_closed_circuit(settings(), failure(Class::Answered)).await;
    let probe = as_a_probe(settings(), failure(Class::Answered)).await;

    assert_eq!((closed, probe), (Does::Fail, Does::Fail));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_only_if_the_attempt_ran_for_a_second() {
    for (ran, want) in [(millis(999), State::Closed), (millis(1000), State::Open)] {
        for class in [Class::Timeout, Class::NotSent] {
            let mut circuit = Circuit::new(Settings::new().with_consecutive_failures(1));

            let call = circuit.passes();
            advance(ran).await;
            call.fails(failure(class).with_phase(Phase::Total)).await;

            assert_eq!(circuit.breaker().state(), want, "{class} after {ran:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_lengthens_the_open_time_to_what_the_server_asked_for() {
    for (asked, want) in [
        (None, secs(30)),
        (Some(secs(7)), secs(30)),
        (Some(secs(77)), secs(77)),
    ] {
        let mut circuit = Circuit::opened(Settings::new()).await;
        advance(secs(30)).await;
        let refusal = failure(Class::Overloaded);

        let refusal = match asked {
            Some(asked) => refusal.with_retry_after(asked),
            None => refusal,
        };
        let refusal = circuit.passes().fails(refusal).await;

        assert_eq!(refusal.retry_in(), Some(want), "{asked:?}");
        assert_eq!(circuit.rejected().retry_in(), Some(want), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_could_be_repeated_is_marked() {
    for (failure, _) in table() {
        let mut circuit = Circuit::new(Settings::new());
        let call = circuit.passes();
        circuit.fail(5, Class::Unknown).await;
        let want = !failure.is_permanent()
            && matches!(
                failure.class(),
                Class::NotSent | Class::Overloaded | Class::Timeout | Class::Unknown
            );

        let marked = call.fails(failure.clone()).await.is_circuit_open();

        assert_eq!(marked, want, "{failure:?}");
    }
}

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

/// The states after each of five equal failures, and what the sixth call gets.
async fn five_times<E, F>(make: F) -> (Vec<State>, E)
where
    E: From<Failure> + Classified + fmt::Debug + Send + Sync + 'static,
    F: Fn() -> E + Clone,
{
    let layer = CircuitBreakerLayer::new("app", Settings::new()).expect("settings are valid");
    let service = layer.layer(service_fn(move |(): ()| {
        let error = make();
        async { Err::<(), E>(error) }
    }));
    let mut states = Vec::new();
    for _ in 0..5 {
        service.clone().oneshot(()).await.expect_err("it fails");
        states.push(layer.breaker().state());
    }
    (states, service.oneshot(()).await.expect_err("it fails"))
}

fn opens_at_the_fifth() -> Vec<State> {
    let mut states = vec![State::Closed; 4];
    states.push(State::Open);
    states
}

#[tokio::test(start_paused = true)]
async fn serves_the_failure_itself() {
    let (states, sixth) = five_times(|| failure(Class::Unknown)).await;

    assert_eq!(states, opens_at_the_fifth());
    assert_eq!(sixth.class(), Class::Rejected);
}

#[tokio::test(start_paused = true)]
async fn serves_boxed_errors_and_counts_foreign_ones() {
    let wrapped =
        || Box::<dyn std::error::Error + Send + Sync>::from(Wrapped(failure(Class::NotSent)));
    for make in [|| BoxError::from("link broke"), wrapped] {
        let (states, sixth) = five_times(make).await;

        assert_eq!(states, opens_at_the_fifth());
        assert_eq!(sixth.failure().unwrap().class(), Class::Rejected);
    }

    // The failure in an error that is wrapped counts, not the wrapping.
    let (states, _) = five_times(|| BoxError::from(Wrapped(failure(Class::Answered)))).await;
    assert_eq!(states, [State::Closed; 5]);
}

#[tokio::test(start_paused = true)]
async fn serves_an_apps_own_error() {
    let (states, sixth) = five_times(|| AppError::NoSuchOrder).await;
    assert_eq!(states, opens_at_the_fifth());
    assert!(matches!(sixth, AppError::Tool(failure) if failure.is_circuit_open()));

    let (states, _) = five_times(|| AppError::Tool(failure(Class::Answered))).await;
    assert_eq!(states, [State::Closed; 5]);
}

#[tokio::test(start_paused = true)]
async fn how_long_a_call_ran_is_the_larger_of_what_is_measured_and_what_is_said() {
    let said = failure(Class::Timeout)
        .with_phase(Phase::Total)
        .with_elapsed(Duration::ZERO);
    let mut circuit = Circuit::new(Settings::new().with_consecutive_failures(1));

    let call = circuit.passes();
    advance(secs(1)).await;
    call.fails(said).await;

    assert_eq!(circuit.breaker().state(), State::Open);
}

#[derive(Debug)]
struct Wrapped(Failure);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapped")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
