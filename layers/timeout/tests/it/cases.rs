//! Faults that people reported, at the level of this layer.

use std::{
    collections::HashMap,
    future::{Pending, pending},
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use steadfast_classify::{Class, Effect, Failure, Flight, Phase};
use steadfast_timeout::{DeadlineLayer, Settings, TimeoutLayer};
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, task};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::wire::{Req, Script, Wire, millis, ms, outcome, timeout};

/// One number for starting and calling is either too short for the one or too long for
/// the other.
#[tokio::test(start_paused = true)]
async fn b01_layers() {
    let settings = Settings::new().with_connect(ms(1_000)).with_read(ms(5_000));
    let slow_tool = Script {
        sent: Some(10),
        answer: Some(3_010),
        ..Script::default()
    };
    let slow_start = Script {
        starting: Some(1_000),
        sent: Some(3_000),
        answer: Some(3_010),
        ..Script::default()
    };

    let got = outcome(settings, slow_tool, Req::tracked()).await;
    assert_eq!(got, (Ok("pong"), 3_010));

    let got = outcome(settings, slow_start, Req::tracked()).await;
    assert_eq!(got, (Err((Class::NotSent, Phase::Connect)), 1_000));
}

/// Nothing is configured anywhere and the tool never answers.
#[tokio::test(start_paused = true)]
async fn b04_layers() {
    let silent = Script {
        sent: Some(0),
        ..Script::default()
    };
    // It reports progress for ever, and only the deadline is left.
    let busy = Script {
        progress: (1..1_000).map(|n| n * 1_000).collect(),
        ..silent.clone()
    };
    for (script, phase, at, message) in [
        (
            silent,
            Phase::Read,
            60_000,
            "\"read\" on \"files\": timed out (read) after 60.0s: its read limit of 60s \
             passed; it may have run, check before repeating it",
        ),
        (
            busy,
            Phase::Total,
            300_000,
            "\"read\" on \"files\": timed out (total) after 300.0s: the deadline of the \
             call passed; it may have run, check before repeating it",
        ),
    ] {
        let service = ServiceBuilder::new()
            .layer(DeadlineLayer::default())
            .layer(TimeoutLayer::default())
            .service(Wire::new(script));
        let start = Instant::now();

        let failure = service.oneshot(Req::tracked()).await.unwrap_err();

        assert_eq!(failure.phase(), Some(phase));
        assert_eq!(millis(start.elapsed()), at);
        assert_eq!(failure.to_string(), message);
    }
}

/// The server reports progress only if it was given a token, and the caller asked for
/// no reports. The wire gives a token to every call that it can track.
#[tokio::test(start_paused = true)]
async fn c01_layers() {
    let service = service_fn(|mut request: Req| async move {
        let token = request.0.take_flight();
        if let Some(flight) = &token {
            assert!(flight.queued() && flight.sending());
        }
        for _ in 0..20 {
            sleep(ms(100)).await;
            token.iter().for_each(Flight::progress);
        }
        Ok::<_, Failure>("done")
    });
    let service = timeout(service, Settings::new().with_read(ms(300)));
    let start = Instant::now();

    let answer = service.oneshot(Req::tracked()).await;

    assert_eq!(answer.unwrap(), "done");
    assert_eq!(millis(start.elapsed()), 2_000);
}

/// Whether progress extends the read limit is a setting, and its default is documented.
#[tokio::test(start_paused = true)]
async fn c03_layers() {
    let settings = Settings::new().with_read(ms(500));
    assert!(settings.reset_on_progress, "the documented default");
    let script = Script {
        sent: Some(0),
        progress: (1..20).map(|n| n * 100).collect(),
        answer: Some(2_000),
        ..Script::default()
    };

    let off = settings.with_reset_on_progress(false);
    let got = outcome(off, script.clone(), Req::tracked()).await;
    assert_eq!(got, (Err((Class::Timeout, Phase::Read)), 500));

    // However late it was sent, and however often it reported before the first look.
    let late = Script {
        sent: Some(130),
        ..script.clone()
    };
    let got = outcome(off, late, Req::tracked()).await;
    assert_eq!(got, (Err((Class::Timeout, Phase::Read)), 630));

    let got = outcome(settings, script, Req::tracked()).await;
    assert_eq!(got, (Ok("pong"), 2_000));
}

/// Progress under a token that was never given, or that of a call that is over, is
/// nobody's progress.
#[tokio::test(start_paused = true)]
async fn c04_layers() {
    let server = Tokens::default();
    let mut service = timeout(server.clone(), Settings::new().with_read(ms(500)));
    let start = Instant::now();
    let mut finished = task::spawn(service.call(Req::tracked()));
    assert_pending!(finished.poll());
    server.answer(0);
    drop(finished);

    let reports = tokio::spawn(async move {
        for _ in 0..10 {
            sleep(ms(100)).await;
            server.report(77);
            server.report(0);
        }
    });
    let ends = tokio::join!(service.call(Req::tracked()), service.call(Req::tracked()),);

    for end in [ends.0, ends.1] {
        let failure = end.unwrap_err();
        assert_eq!(failure.phase(), Some(Phase::Read));
        assert_eq!(failure.elapsed(), Some(ms(500)));
    }
    assert_eq!(millis(start.elapsed()), 500);
    reports.abort();
}

/// A call that timed out is cancelled before another attempt is made, and may be
/// repeated only where that is harmless.
#[tokio::test(start_paused = true)]
async fn d04_layers() {
    for (effect, want) in [
        (Effect::NonIdempotent, vec!["sent", "cancelled"]),
        (Effect::Idempotent, ["sent", "cancelled"].repeat(3)),
    ] {
        let wire = Wire::new(Script {
            sent: Some(1),
            answer: Some(400),
            ..Script::default()
        });
        let mut service = timeout(wire.clone(), Settings::new().with_read(ms(300)));

        for _attempt in 1..=3 {
            let failure = service.call(Req::tracked()).await.unwrap_err();
            assert_eq!(failure.class(), Class::Timeout);
            if !failure.may_repeat(effect) {
                break;
            }
        }

        let done = wire.logged().into_iter().map(|(_, what)| what);
        let done: Vec<_> = done.filter(|what| *what != "answered").collect();
        assert_eq!(done, want, "{effect}");
    }
}

/// A connection that hands progress to the call whose token it carries.
#[derive(Clone, Default)]
struct Tokens(Arc<Mutex<HashMap<usize, Flight>>>);

impl Tokens {
    fn report(&self, token: usize) {
        if let Some(flight) = self.0.lock().unwrap().get(&token) {
            flight.progress();
        }
    }

    fn answer(&self, token: usize) {
        self.0.lock().unwrap()[&token].answered();
    }
}

impl Service<Req> for Tokens {
    type Response = ();
    type Error = Failure;
    type Future = Pending<Result<(), Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let flight = request.0.take_flight().unwrap();
        assert!(flight.queued() && flight.sending());
        let mut calls = self.0.lock().unwrap();
        let token = calls.len();
        calls.insert(token, flight);
        pending()
    }
}
