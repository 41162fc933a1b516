//! What operators see.

use std::{
    future::pending,
    io::{self, Write},
    sync::{Arc, Mutex},
};

use steadfast_classify::Failure;
use steadfast_timeout::{DeadlineLayer, Settings};
use tower::{Layer, ServiceExt, service_fn};
use tracing_subscriber::fmt::MakeWriter;

use crate::wire::{Ping, Req, Script, Wire, ms, timeout};

#[tokio::test(start_paused = true)]
async fn each_limit_that_runs_out_is_one_event() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .without_time()
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let wire = Wire::new(Script::default());
    let hangs = service_fn(|_: Ping| pending::<Result<(), Failure>>());

    let timed = timeout(wire, Settings::new()).oneshot(Req::tracked());
    assert!(timed.await.is_err());
    let ended = DeadlineLayer::new(ms(1_500)).unwrap().layer(hangs);
    assert!(ended.oneshot(Ping("secret")).await.is_err());

    assert_eq!(
        lines.all(),
        [
            "DEBUG steadfast_timeout::observe: attempt ran out of time class=\"not_sent\" \
             phase=\"connect\" limit=5s elapsed=5s server=\"files\" operation=\"read\"",
            "DEBUG steadfast_timeout::observe: call passed its deadline class=\"timeout\" \
             phase=\"total\" limit=1.5s elapsed=1.5s",
        ]
    );
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn each_limit_that_runs_out_is_counted() {
    let counters = counters::Counters::default();
    let _guard = metrics::set_default_local_recorder(&counters);
    let wire = Wire::new(Script::default());
    let hangs = service_fn(|_: Ping| pending::<Result<(), Failure>>());

    let timed = timeout(wire, Settings::new()).oneshot(Req::tracked());
    assert!(timed.await.is_err());
    let ended = DeadlineLayer::default().layer(hangs).oneshot(Ping("x"));
    assert!(ended.await.is_err());

    assert_eq!(
        counters.all(),
        [
            "steadfast.timeout.elapsed phase=connect class=not_sent",
            "steadfast.deadline.elapsed class=timeout",
        ]
    );
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn all(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(feature = "metrics")]
mod counters {
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    /// Every increment by one, in order.
    #[derive(Default)]
    pub(crate) struct Counters(Arc<Mutex<Vec<String>>>);

    struct One(Arc<Mutex<Vec<String>>>, String);

    impl Counters {
        pub(crate) fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl CounterFn for One {
        fn increment(&self, value: u64) {
            assert_eq!(value, 1);
            self.0.lock().unwrap().push(self.1.clone());
        }

        fn absolute(&self, _: u64) {
            panic!("{} only grows", self.1)
        }
    }

    impl Recorder for Counters {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let labels = key.labels().map(|l| format!(" {}={}", l.key(), l.value()));
            let name = format!("{}{}", key.name(), labels.collect::<String>());
            Counter::from_arc(Arc::new(One(Arc::clone(&self.0), name)))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }
}
