//! What is counted, with the feature `metrics`.
#![cfg(feature = "metrics")]

mod support;

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use steadfast_budget::{Budget, Global, Keyed, Mode, RetryBudget};
use support::{Request, Reserving, limit, ms};
use tower::{Service, retry::budget::Budget as _};

/// Counts by name and label.
#[derive(Clone, Debug, Default)]
struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

#[derive(Debug)]
struct Count(Counts, String);

#[tokio::test(start_paused = true)]
async fn counts_what_does_not_simply_pass() {
    let counts = Counts::default();
    metrics::with_local_recorder(&counts, || {
        let warns = Global::new(limit("all", "1/h").with_mode(Mode::Warn));
        let session = Keyed::new(limit("session", "1/h"), |request: &Request| request.session)
            .with_max_keys(NonZeroUsize::MIN);
        let mut service =
            Budget::new(Reserving::new(), session.clone().then(warns)).with_max_wait(ms(1));
        // Admitted; rejected; admitted by the overflow, and warned of.
        for session in [1, 1, 2] {
            drop(service.call(Request::of(session)));
        }
        let mut patient = Budget::new(Reserving::new(), session).with_max_wait(ms(36_000_000));
        drop(patient.call(Request::of(1)));
        let budget = RetryBudget::default();
        while budget.withdraw() {}
    });

    let counts = counts.0.lock().unwrap().clone();
    let want = [
        ("steadfast.budget.overflowed limit=session", 1),
        ("steadfast.budget.rejected limit=session", 1),
        ("steadfast.budget.retry_refused", 1),
        ("steadfast.budget.waited limit=session", 1),
        ("steadfast.budget.warned limit=all", 1),
    ];
    assert_eq!(
        counts,
        want.map(|(name, count)| (name.to_owned(), count)).into()
    );
}

// === impl Counts ===

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            name += &format!(" {}={}", label.key(), label.value());
        }
        Counter::from_arc(Arc::new(Count(self.clone(), name)))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

// === impl Count ===

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        let mut counts = self.0.0.lock().expect("not poisoned");
        *counts.entry(self.1.clone()).or_default() += value;
    }

    fn absolute(&self, _: u64) {}
}
