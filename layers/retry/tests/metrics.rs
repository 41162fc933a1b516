//! The counters behind feature `metrics`.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use steadfast_classify::Class;

mod support;
use support::{Request, even, failed, layer, run};

/// Keeps counters by name and labels.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            name += &format!(" {}={}", label.key(), label.value());
        }
        let mut counters = self.0.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn retries_recoveries_and_what_was_given_up_are_counted() {
    let counters = Counters::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();

    with_local_recorder(&counters, || {
        runtime.block_on(async {
            let layer = layer(even().with_max_retries(2));
            let unknown = failed(Class::Unknown);
            let busy = failed(Class::Overloaded);
            run(&layer, Request::read(), [Ok("done")]).await;
            run(&layer, Request::read(), [unknown, busy, Ok("done")]).await;
            run(&layer, Request::read(), vec![failed(Class::Unknown); 3]).await;
            run(&layer, Request::write(), [failed(Class::Unknown)]).await;
        });
    });

    let got: Vec<_> = counters
        .0
        .into_inner()
        .unwrap()
        .into_iter()
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
        .collect();
    let want = [
        ("steadfast.retry.gave_up reason=exhausted", 1),
        ("steadfast.retry.recovered", 1),
        ("steadfast.retry.retries class=overloaded", 1),
        ("steadfast.retry.retries class=unknown", 3),
    ];
    assert_eq!(got, want.map(|(name, count)| (name.to_owned(), count)));
}
