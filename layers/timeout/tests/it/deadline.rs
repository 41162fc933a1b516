//! One end for a whole logical call.

use std::{
    future::{pending, ready},
    time::Duration,
};

use steadfast_classify::{Call, Class, Failure, Limits, Phase};
use steadfast_timeout::{Deadline, DeadlineLayer, Elapsed, TimeoutLayer};
use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, assert_ready_ok, task};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_test::{assert_request_eq, mock};

use crate::{
    contract::ready_after,
    wire::{Ping, Req, Script, Wire, ms, soon},
};

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline() {
    for (takes, want) in [(999, Ok(())), (1_000, Ok(())), (1_001, Err(Class::Timeout))] {
        let service = service_fn(move |_: Ping| async move {
            sleep(ms(takes)).await;
            Ok::<_, Failure>(())
        });

        let got = within(1_000, service).oneshot(Ping("x")).await;

        let got = got.map_err(|failure| failure.class());
        assert_eq!(got, want, "takes {takes} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_names_the_deadline() {
    let service = service_fn(|_: Ping| pending::<Result<(), Failure>>());

    let failure = within(1_000, service).oneshot(Ping("secret")).await;

    let failure = failure.unwrap_err();
    assert_eq!(failure.phase(), Some(Phase::Total));
    assert!(failure.may_have_run());
    assert_eq!(failure.find_source::<Elapsed>().unwrap().limit(), ms(1_000));
    assert_eq!(
        failure.to_string(),
        "call: timed out (total) after 1.0s: the deadline of the call passed; \
         it may have run, check before repeating it"
    );
}

#[tokio::test(start_paused = true)]
async fn the_layers_inside_see_the_deadline() {
    let start = Instant::now();
    let hour = ms(3_600_000);
    for (request, want) in [
        (Req::default(), ms(1_000)),
        // An absolute deadline that is there already is a ceiling.
        (Req::default().with_deadline(ms(300)), ms(300)),
        (Req::default().with_deadline(hour), ms(1_000)),
        // What the call brings along replaces what the layer says.
        (limited_to(ms(50)), ms(50)),
        (limited_to(hour), hour),
        (limited_to(hour).with_deadline(ms(300)), ms(300)),
    ] {
        for stamp_only in [true, false] {
            let seen = service_fn(|request: Req| ready(deadline_of(&request)));
            let mut layer = DeadlineLayer::new(ms(1_000)).unwrap();
            if stamp_only {
                layer = layer.stamp_only();
            }

            let deadline = layer.layer(seen).oneshot(request.clone()).await.unwrap();

            assert_eq!(deadline, Some(start + want), "{request:?} {stamp_only}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_too_far_away_is_none() {
    for request in [Req::default(), limited_to(Duration::MAX)] {
        let seen = service_fn(|request: Req| async move {
            sleep(ms(86_400_000)).await;
            deadline_of(&request)
        });
        let layer = DeadlineLayer::new(Duration::MAX).unwrap();

        let deadline = layer.layer(seen).oneshot(request).await.unwrap();

        assert_eq!(deadline, None);
    }
}

#[tokio::test(start_paused = true)]
async fn stamping_leaves_the_end_to_the_layers_inside() {
    let start = Instant::now();
    let service = service_fn(|_: Req| async {
        sleep(ms(9_000)).await;
        Ok::<_, Failure>(())
    });
    let layer = DeadlineLayer::new(ms(1_000)).unwrap().stamp_only();

    assert!(layer.layer(service).oneshot(Req::default()).await.is_ok());
    assert_eq!(start.elapsed(), ms(9_000));

    let service = ServiceBuilder::new()
        .layer(layer)
        .layer(TimeoutLayer::default())
        .service(Wire::new(Script::default()));
    let failure = service.oneshot(Req::tracked()).await.unwrap_err();
    assert_eq!(failure.phase(), Some(Phase::Total));
    assert_eq!(failure.elapsed(), Some(ms(1_000)));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_context_is_timed_where_others_are_only_stamped() {
    let service = service_fn(|_: Ping| pending::<Result<(), Failure>>());
    let layer = DeadlineLayer::new(ms(1_000)).unwrap().stamp_only();

    let failure = layer.layer(service).oneshot(Ping("x")).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout);
    assert_eq!(failure.elapsed(), Some(ms(1_000)));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_readiness_counts_and_proves_that_nothing_was_sent() {
    let service = within(1_000, ready_after(ms(5_000), || ready(Ok(()))));

    let failure = soon(service.oneshot(Ping("x"))).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.phase(), Some(Phase::Total));
    assert_eq!(failure.elapsed(), Some(ms(1_000)));
}

#[tokio::test(start_paused = true)]
async fn stamping_delegates_readiness_and_calls_the_instance_that_is_ready() {
    let (inner, mut handle) = mock::pair::<Ping, &'static str>();
    let layer = DeadlineLayer::default().stamp_only();
    let mut service = mock::Spawn::new(layer.layer(inner));
    handle.allow(0);
    assert_pending!(service.poll_ready());

    handle.allow(1);
    assert_ready_ok!(service.poll_ready());
    let mut call = task::spawn(service.call(Ping("ping")));
    assert_request_eq!(handle, Ping("ping")).send_response("pong");

    assert_eq!(assert_ready_ok!(call.poll()), "pong");
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_not_begun() {
    let service = service_fn(|_: Req| async { panic!("called") as Result<(), Failure> });
    let request = Req::default().with_deadline(Duration::ZERO);

    let failure = within(1_000, service).oneshot(request).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.elapsed(), Some(Duration::ZERO));
}

/// Both end at the same moment; the inner one knows more.
#[tokio::test(start_paused = true)]
async fn the_proof_of_the_timeout_layer_inside_is_kept() {
    let service = ServiceBuilder::new()
        .layer(DeadlineLayer::new(ms(1_000)).unwrap())
        .layer(TimeoutLayer::default())
        .service(Wire::new(Script::default()));

    let failure = service.oneshot(Req::tracked()).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.phase(), Some(Phase::Total));
    assert_eq!(failure.origin().layer, Some("timeout"));
}

#[tokio::test(start_paused = true)]
async fn the_work_is_dropped_before_anybody_hears_of_it() {
    let wire = Wire::new(Script::default());
    let mut service = within(1_000, wire.clone());
    let mut call = task::spawn(service.call(Req::default()));
    assert_pending!(call.poll());

    advance(ms(1_000)).await;
    assert!(matches!(call.poll(), std::task::Poll::Ready(Err(_))));

    assert_eq!(wire.logged(), [(1_000, "cancelled")]);
}

#[tokio::test(start_paused = true)]
async fn the_time_runs_from_the_call_and_not_from_the_first_poll() {
    let service = service_fn(|_: Ping| pending::<Result<(), Failure>>());
    let call = within(1_000, service).call(Ping("x"));
    advance(ms(700)).await;

    let failure = call.await.unwrap_err();

    assert_eq!(failure.elapsed(), Some(ms(1_000)));
}

fn within<S>(millis: u64, inner: S) -> Deadline<S> {
    DeadlineLayer::new(ms(millis)).unwrap().layer(inner)
}

fn limited_to(total: Duration) -> Req {
    Req::default().with_limits(Limits::new().with_total(total))
}

fn deadline_of(request: &Req) -> Result<Option<Instant>, Failure> {
    Ok(request.context().unwrap().deadline())
}
