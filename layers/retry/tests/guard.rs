//! Which failures are repeated.

use steadfast_classify::{Call, Class, Effect, Failure};
use tower::{Layer, ServiceExt};

mod support;
use support::{Request, failed, layer, ms, run, secs};

const CLASSES: [Class; 7] = [
    Class::NotSent,
    Class::Overloaded,
    Class::Timeout,
    Class::Unknown,
    Class::Answered,
    Class::Rejected,
    Class::Cancelled,
];

#[tokio::test(start_paused = true)]
async fn class_and_effect_decide_whether_a_call_is_repeated() {
    let layer = layer(support::even());
    for class in CLASSES {
        for effect in [Effect::ReadOnly, Effect::Idempotent, Effect::NonIdempotent] {
            let repeated = match class {
                Class::NotSent | Class::Overloaded => true,
                Class::Timeout | Class::Unknown => effect != Effect::NonIdempotent,
                _ => false,
            };
            let script = if repeated {
                vec![failed(class), Ok("done")]
            } else {
                vec![failed(class)]
            };

            let run = run(&layer, Request::new(effect), script).await;

            assert_eq!(run.result.is_ok(), repeated, "{class} {effect}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_repeated() {
    let permanent = Failure::new(Class::NotSent).with_permanent();

    let run = run(&layer(support::even()), Request::read(), [Err(permanent)]).await;

    assert!(run.failure().is_permanent());
    assert_eq!(run.took, ms(0));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_run_before_its_last_attempt_is_not_repeated() {
    // A service below repeated it: "unknown", then "refused".
    let refused = Failure::new(Class::Overloaded).with_may_have_run(true);
    let layer = layer(support::even());

    let write = run(&layer, Request::write(), [Err(refused.clone())]).await;
    assert!(write.failure().may_have_run());

    let read = run(&layer, Request::read(), [Err(refused), Ok("done")]).await;
    assert_eq!(read.result.unwrap(), "done");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_nobody_classified_counts_as_unknown() {
    for (effect, attempts) in [(Effect::Idempotent, 4), (Effect::NonIdempotent, 1)] {
        let (mock, mut handle) = tower_test::mock::pair::<Request, ()>();
        let service = layer(support::even()).layer(mock);
        let server = async {
            let mut count = 0;
            while let Some((_, reply)) = handle.next_request().await {
                reply.send_error("something else");
                count += 1;
            }
            count
        };

        let (result, count) = tokio::join!(service.oneshot(Request::new(effect)), server);

        assert_eq!(result.unwrap_err().to_string(), "something else");
        assert_eq!(count, attempts, "{effect}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_smithy_what_says_nothing_of_itself_is_not_repeated_once_it_may_have_run() {
    #[derive(Clone, Debug, PartialEq)]
    struct Plain;
    impl Call for Plain {}

    for (class, attempts) in [(Class::Unknown, 1), (Class::NotSent, 4)] {
        let (mock, mut handle) = tower_test::mock::pair::<Plain, ()>();
        let service = layer(support::even()).layer(mock);
        let server = async {
            let mut count = 0;
            while let Some((_, reply)) = handle.next_request().await {
                reply.send_error(Failure::new(class));
                count += 1;
            }
            count
        };

        let (result, count) = tokio::join!(service.oneshot(Plain), server);

        assert!(result.is_err());
        assert_eq!(count, attempts, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_p6_an_open_circuit_is_not_waited_for() {
    let layer = layer(support::even());
    let mut opened = Failure::new(Class::Unknown);
    opened.mark_circuit_open(Some(ms(50)));
    let rejected = Failure::new(Class::Rejected).with_retry_in(ms(50));

    for failure in [opened, rejected] {
        let run = run(&layer, Request::read(), [Err(failure)]).await;

        assert_eq!(run.attempts(), 1);
        assert_eq!(run.took, ms(0), "waited before it gave up");
        assert_eq!(run.failure().retry_in(), Some(ms(50)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_circuit_that_opens_on_a_later_attempt_ends_the_call() {
    let mut opened = Failure::new(Class::NotSent);
    opened.mark_circuit_open(Some(secs(30)));
    let script = [failed(Class::NotSent), Err(opened)];

    let run = run(&layer(support::even()), Request::write(), script).await;

    assert!(run.failure().is_circuit_open());
    assert_eq!(run.failure().attempts(), 2);
    assert_eq!(run.took, ms(100));
}
