//! A wire that plays a script: what it marks, when it answers, when it was cancelled.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use steadfast_classify::{Call, CallContext, Class, Failure, Flight, Limits, Origin, Phase};
use steadfast_timeout::{Settings, Timeout, TimeoutLayer};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};
use tower::{Layer, Service, ServiceExt};

/// A request with a context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Req(pub(crate) CallContext);

/// A request without one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ping(pub(crate) &'static str);

/// What happens to one call, in milliseconds from it. `None`: never.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Leaves the flight alone, as a foreign service does.
    pub(crate) ignores_flights: bool,
    pub(crate) starting: Option<u64>,
    pub(crate) sent: Option<u64>,
    pub(crate) progress: Vec<u64>,
    pub(crate) answer: Option<u64>,
}

/// What the wire did, and when, in milliseconds since it was made.
pub(crate) type Log = Arc<Mutex<Vec<(u64, &'static str)>>>;

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    script: Arc<Script>,
    made: Instant,
    pub(crate) log: Log,
}

#[derive(Debug)]
pub(crate) struct Answer {
    answer: oneshot::Receiver<&'static str>,
    wire: Wire,
    open: bool,
}

// === impl Req ===

impl Req {
    pub(crate) fn tracked() -> Self {
        Self(CallContext::tracked())
    }

    pub(crate) fn with_limits(mut self, limits: Limits) -> Self {
        self.0.set_limits(Arc::new(limits));
        self
    }

    pub(crate) fn with_deadline(mut self, after: Duration) -> Self {
        self.0.cap_deadline(Instant::now() + after);
        self
    }
}

impl Call for Req {
    fn context(&self) -> Option<&CallContext> {
        Some(&self.0)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.0)
    }
}

impl Call for Ping {}

// === impl Wire ===

impl Wire {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script: Arc::new(script),
            made: Instant::now(),
            log: Log::default(),
        }
    }

    pub(crate) fn logged(&self) -> Vec<(u64, &'static str)> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, what: &'static str) {
        let at = millis(self.made.elapsed());
        self.log.lock().unwrap().push((at, what));
    }

    async fn play(self, flight: Option<Flight>, answer: oneshot::Sender<&'static str>) {
        let start = Instant::now();
        let at = |millis: &u64| sleep_until(start + ms(*millis));
        let Some(sent) = &self.script.sent else {
            return std::future::pending().await;
        };
        at(sent).await;
        if flight.as_ref().is_some_and(|flight| !flight.sending()) {
            return self.note("refused");
        }
        self.note("sent");
        for progress in &self.script.progress {
            at(progress).await;
            flight.iter().for_each(Flight::progress);
        }
        let Some(answered) = &self.script.answer else {
            return std::future::pending().await;
        };
        at(answered).await;
        flight.iter().for_each(Flight::answered);
        self.note("answered");
        // Nobody waits any longer: a late answer is dropped.
        let _ = answer.send("pong");
    }
}

impl Service<Req> for Wire {
    type Response = &'static str;
    type Error = Failure;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Req) -> Answer {
        let flight = request.0.take_flight();
        let flight = flight.filter(|_| !self.script.ignores_flights);
        if let Some(flight) = &flight {
            flight.describe(Origin::server("files").with_operation("read"));
            if let Some(limit) = self.script.starting {
                flight.starting(ms(limit));
            }
            assert!(flight.queued());
        }
        let (send, answer) = oneshot::channel();
        tokio::spawn(self.clone().play(flight, send));
        Answer {
            answer,
            wire: self.clone(),
            open: true,
        }
    }
}

impl Future for Answer {
    type Output = Result<&'static str, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| {
            self.open = false;
            answer.map_err(|_| Failure::new(Class::Unknown))
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.open {
            self.wire.note("cancelled");
        }
    }
}

// === helpers ===

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

pub(crate) fn timeout<S>(inner: S, settings: Settings) -> Timeout<S> {
    TimeoutLayer::new(settings).unwrap().layer(inner)
}

/// How a call ends: its answer, or class and phase; and after how many milliseconds.
pub(crate) async fn outcome(
    settings: Settings,
    script: Script,
    request: Req,
) -> (Result<&'static str, (Class, Phase)>, u64) {
    let start = Instant::now();
    let result = timeout(Wire::new(script), settings).oneshot(request).await;
    let result = result.map_err(|failure| {
        assert_eq!(failure.elapsed(), Some(start.elapsed()), "{failure}");
        assert_eq!(failure.origin().layer, Some("timeout"));
        (failure.class(), failure.phase().unwrap())
    });
    (result, millis(start.elapsed()))
}

/// A test that hangs says nothing; this one fails.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    let day = ms(86_400_000);
    tokio::time::timeout(day, future).await.expect("it hangs")
}
