//! What is counted.
#![cfg(feature = "metrics")]

use std::future::pending;

use steadfast_classify::Failure;
use steadfast_timeout::{DeadlineLayer, Settings};
use tower::{Layer, ServiceExt, service_fn};

use crate::wire::{Ping, Req, Script, Wire, timeout};

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
