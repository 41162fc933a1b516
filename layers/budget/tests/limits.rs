//! What a limit lets through, to the edge, and what becomes of the rest.

mod support;

use std::{num::NonZeroU32, time::Duration};

use steadfast_budget::{
    Admit, Budget, BudgetLayer, Global, InvalidLimit, Keyed, Mode, OverBudget, Patience, Quota,
    Verdict,
};
use steadfast_classify::{BoxError, Class, Failure};
use support::{Request, Reserving, global, limit, ms, over, quota, send};
use tokio::time;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

#[tokio::test(start_paused = true)]
async fn a_call_is_regained_at_its_interval_and_not_before() {
    let mut service = Budget::new(Reserving::new(), global("4/s burst 2"));
    for _ in 0..2 {
        send(&mut service, Request::of(1)).await.unwrap();
    }

    time::advance(ms(250) - Duration::from_nanos(1)).await;
    let failure = send(&mut service, Request::of(1)).await.unwrap_err();
    assert_eq!(over(&failure).retry_in(), Duration::from_nanos(1));

    time::advance(Duration::from_nanos(1)).await;
    send(&mut service, Request::of(1)).await.unwrap();
    let failure = send(&mut service, Request::of(1)).await.unwrap_err();
    assert_eq!(failure.retry_in(), Some(ms(250)));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_refills_to_its_burst_and_no_further() {
    let mut service = Budget::new(Reserving::new(), global("1/s burst 3"));
    for _ in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap();
    }

    time::advance(Duration::from_secs(3_600)).await;

    for _ in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap();
    }
    send(&mut service, Request::of(1)).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn each_key_has_a_bucket_of_its_own() {
    let mut service = Budget::new(Reserving::new(), by_session("1/s"));

    for session in 0..100 {
        send(&mut service, Request::of(session)).await.unwrap();
    }

    for session in 0..100 {
        let failure = send(&mut service, Request::of(session)).await.unwrap_err();
        assert_eq!(over(&failure).limit(), "session");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_shown_only_if_it_may_be() {
    for (limits, shown) in [
        (by_session("1/s"), None),
        (by_session("1/s").with_shown_keys(), Some("987654321")),
    ] {
        let mut service = Budget::new(Reserving::new(), limits);
        send(&mut service, Request::of(987_654_321)).await.unwrap();

        let failure = send(&mut service, Request::of(987_654_321))
            .await
            .unwrap_err();

        assert_eq!(over(&failure).key(), shown);
        let told = format!("{failure} {failure:?} {service:?}");
        assert_eq!(told.contains("987654321"), shown.is_some(), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_session_wastes_is_not_taken_from_the_others() {
    let limits = by_session("1/h burst 2").then(global("1/h burst 4"));
    let mut service = Budget::new(Reserving::new(), limits);

    for _ in 0..50 {
        let _ = send(&mut service, Request::of(1)).await;
    }

    // Keyed first: the 48 rejected calls never reached the global bucket.
    send(&mut service, Request::of(2)).await.unwrap();
    send(&mut service, Request::of(3)).await.unwrap();
    let failure = send(&mut service, Request::of(4)).await.unwrap_err();
    assert_eq!(over(&failure).limit(), "all");
}

#[tokio::test(start_paused = true)]
async fn keyed_limits_are_stacked_in_their_order() {
    let tool = Keyed::new(limit("tool", "1/h burst 2"), |request: &Request| {
        request.tool
    });
    let limits = by_session("1/h burst 3")
        .then(tool)
        .then(global("1/h burst 5"));
    let mut service = Budget::new(Reserving::new(), limits);
    let mut send_and_name = async |session, tool| {
        let sent = send(&mut service, Request::of(session).with_tool(tool)).await;
        sent.map_err(|failure| over(&failure).limit().to_owned())
    };

    for (session, tool, want) in [
        (1, 1, Ok(())),
        (1, 1, Ok(())),
        (1, 1, Err("tool")),
        // Its third call was paid to the session, though the tool rejected it.
        (1, 2, Err("session")),
        (2, 2, Ok(())),
        (2, 2, Ok(())),
        (3, 3, Ok(())),
        (3, 3, Err("all")),
    ] {
        let got = send_and_name(session, tool).await;
        assert_eq!(got, want.map_err(str::to_owned), "{session}, {tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_only_warns_admits() {
    for max_wait in [ms(0), ms(1_000)] {
        let warning = Global::new(limit("all", "1/h").with_mode(Mode::Warn));
        let keyed = Keyed::new(
            limit("session", "1/h").with_mode(Mode::Warn),
            |request: &Request| request.session,
        );
        let mut service =
            Budget::new(Reserving::new(), keyed.then(warning)).with_max_wait(max_wait);
        let begin = time::Instant::now();

        for _ in 0..10 {
            send(&mut service, Request::of(1)).await.unwrap();
        }

        assert_eq!(begin.elapsed(), ms(0), "and does not wait");
    }
}

#[tokio::test(start_paused = true)]
async fn no_policy_admits_everything() {
    let mut service = Budget::new(Reserving::new(), None::<Global>);
    for _ in 0..10 {
        send(&mut service, Request::of(1)).await.unwrap();
    }

    let mut service = Budget::new(Reserving::new(), Some(global("1/h")));
    send(&mut service, Request::of(1)).await.unwrap();
    send(&mut service, Request::of(1)).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_ones_own_decides() {
    #[derive(Clone)]
    struct Odd;
    impl Admit<Request> for Odd {
        type Ticket = ();

        fn admit(&self, request: &Request, (): &mut (), _: Patience<'_>) -> Verdict {
            if request.session % 2 == 1 {
                Verdict::Admitted
            } else {
                Verdict::Over(OverBudget::new("odd", ms(7)).with_key("even"))
            }
        }
    }
    let mut service = Budget::new(Reserving::new(), by_session("10/s").then(Odd));

    send(&mut service, Request::of(1)).await.unwrap();
    let failure = send(&mut service, Request::of(2)).await.unwrap_err();

    assert_eq!(
        over(&failure),
        &OverBudget::new("odd", ms(7)).with_key("even")
    );
    assert_eq!(failure.retry_in(), Some(ms(7)));
}

#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error(transparent)]
    Tool(#[from] Failure),
    #[error("no such order")]
    NoSuchOrder,
}

#[tokio::test(start_paused = true)]
async fn works_with_three_kinds_of_error() {
    async fn second_call<E: From<Failure>>(answer: fn() -> Result<(), E>) -> (E, E) {
        let mut service = ServiceBuilder::new()
            .layer(BudgetLayer::new(global("1/h")))
            .service(service_fn(move |_: Request| async move { answer() }));
        let mut call = async || service.ready().await?.call(Request::of(1)).await;
        (call().await.err().unwrap(), call().await.err().unwrap())
    }

    let (own, rejected) = second_call(|| Err(Failure::new(Class::Answered))).await;
    assert_eq!(own.class(), Class::Answered);
    assert_eq!(over(&rejected).limit(), "all");

    let (own, rejected) = second_call(|| Err(BoxError::from("no such order"))).await;
    assert_eq!(own.to_string(), "no such order");
    assert_eq!(over(support::failure(&rejected)).limit(), "all");

    let (own, rejected) = second_call(|| Err(AppError::NoSuchOrder)).await;
    assert!(matches!(own, AppError::NoSuchOrder));
    let AppError::Tool(rejected) = rejected else {
        panic!("{rejected}");
    };
    assert_eq!(over(&rejected).limit(), "all");
}

#[test]
fn quotas_are_read_in_one_way() {
    for (text, interval, burst) in [
        ("1/s", Duration::from_secs(1), 1),
        ("10/s", ms(100), 10),
        ("60/min", Duration::from_secs(1), 60),
        ("2/h burst 90", Duration::from_secs(1_800), 90),
        // Rounded up, so that three seconds never hold a tenth call.
        ("3/s", Duration::from_nanos(333_333_334), 3),
        ("4294967295/s", Duration::from_nanos(1), u32::MAX),
    ] {
        let quota = quota(text);
        assert_eq!(quota.interval(), interval, "{text}");
        assert_eq!(quota.burst().get(), burst, "{text}");
        assert_eq!(quota.to_string(), text);
    }
    for (text, mode) in [("enforce", Mode::Enforce), ("warn", Mode::Warn)] {
        assert_eq!(text.parse(), Ok(mode));
        assert_eq!(mode.to_string(), text);
    }
    assert_eq!("off".parse::<Mode>(), Err(InvalidLimit::Mode));
}

#[test]
fn a_burst_that_would_not_refill_in_a_century_is_refused() {
    let hourly = Quota::per_hour(NonZeroU32::MIN);
    let max = 100 * 365 * 24;
    let burst = |burst| NonZeroU32::new(burst).unwrap();

    assert_eq!(hourly.with_burst(burst(max)).unwrap().burst().get(), max);
    let error = hourly.with_burst(burst(max + 1)).unwrap_err();

    assert_eq!(error, InvalidLimit::Burst { max });
    assert!(error.to_string().starts_with("burst must "), "{error}");
    assert!(error.to_string().ends_with(&max.to_string()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_largest_burst_works() {
    let hourly = Quota::per_hour(NonZeroU32::MIN);
    let largest = hourly
        .with_burst(NonZeroU32::new(876_000).unwrap())
        .unwrap();
    let limits = Global::new(steadfast_budget::Limit::new("all", largest));
    let mut service = Budget::new(Reserving::new(), limits);
    for _ in 0..876_000 {
        send(&mut service, Request::of(1)).await.unwrap();
    }

    let failure = send(&mut service, Request::of(1)).await.unwrap_err();

    assert_eq!(failure.retry_in(), Some(Duration::from_secs(3_600)));
}

#[tokio::test(start_paused = true)]
async fn layers_of_one_policy_and_their_services_share_it() {
    let layer = BudgetLayer::new(global("1/h burst 2"));
    let (mut one, mut two) = (
        layer.layer(Reserving::new()),
        layer.clone().layer(Reserving::new()),
    );
    let mut three = one.clone();

    send(&mut one, Request::of(1)).await.unwrap();
    send(&mut two, Request::of(1)).await.unwrap();

    send(&mut three, Request::of(1)).await.unwrap_err();
}

/// A limit per session, named "session".
fn by_session(quota: &str) -> Keyed<u64, fn(&Request) -> u64> {
    Keyed::new(limit("session", quota), |request: &Request| request.session)
}
