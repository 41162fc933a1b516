//! What is told: events, and with feature `metrics` counters.

mod support;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use steadfast_circuit_breaker::{CircuitBreakerLayer, Settings};
use steadfast_classify::{Class, Failure};
use support::{Circuit, secs};
use tokio::time::advance;
use tower::{Layer, ServiceExt, service_fn};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Keeps each event as one line: level, message, fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line {
    message: String,
    fields: String,
}

// === impl Lines ===

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panicked in it"))
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast_circuit_breaker")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line {
            message: String::new(),
            fields: String::new(),
        };
        event.record(&mut line);
        let level = event.metadata().level();
        let Line { message, fields } = line;
        let line = format!("{level} {message}:{fields}");
        self.0.lock().expect("no test panicked in it").push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields += &format!(" {name}={value:?}"),
        }
    }
}

/// To be called first: an event that comes about when nobody listens may be taken for one
/// that nobody wants, by the tests beside it too.
fn listen() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let guard = tracing::subscriber::set_default(lines.clone());
    (lines, guard)
}

#[tokio::test(start_paused = true)]
async fn each_change_is_one_event() {
    let (lines, _guard) = listen();
    let mut circuit = Circuit::new(Settings::new());

    circuit.succeed(3).await;
    circuit.fail(4, Class::Timeout).await;
    assert_eq!(lines.take(), [""; 0]);

    circuit.fail(1, Class::Timeout).await;
    assert_eq!(
        lines.take(),
        [
            "WARN circuit opened: circuit=server from=\"closed\" to=\"open\" \
         cause=\"consecutive_failures\" class=\"timeout\" trips=1 open_for=Some(30s)"
        ],
    );

    advance(secs(30)).await;
    circuit.succeed(1).await;
    assert_eq!(
        lines.take(),
        [
            "DEBUG circuit half opened: circuit=server from=\"open\" to=\"half_open\" \
             cause=\"consecutive_failures\" class=\"timeout\" trips=1",
            "INFO circuit closed: circuit=server from=\"half_open\" to=\"closed\" trips=1",
        ],
    );

    circuit.breaker().isolate();
    circuit.breaker().isolate();
    assert_eq!(
        lines.take(),
        [
            "WARN circuit opened: circuit=server from=\"closed\" to=\"isolated\" \
         cause=\"isolated\" trips=1 open_for=None"
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn each_call_that_is_turned_away_is_one_event() {
    let (lines, _guard) = listen();
    let mut circuit = Circuit::opened(Settings::new()).await;
    lines.take();

    circuit.rejected();
    circuit.breaker().observe_only(true);
    circuit.succeed(1).await;

    let line = "DEBUG circuit is not closed: circuit=server state=\"open\" observed=";
    assert_eq!(
        lines.take(),
        [format!("{line}false"), format!("{line}true")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_does_not_come_back_is_one_event() {
    let (lines, _guard) = listen();
    let mut circuit = Circuit::opened(Settings::new()).await;
    advance(secs(30)).await;
    let _hung = circuit.passes();
    advance(secs(91)).await;
    lines.take();

    drop(circuit.passes());
    let _next = circuit.passes();

    let line = "WARN probe did not come back within its lease: circuit=server";
    assert_eq!(lines.take(), [line]);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_circuit_is_told_with_its_key_and_a_full_table_once_a_second() {
    let (lines, _guard) = listen();
    let settings = Settings::new()
        .with_max_keys(1)
        .with_consecutive_failures(1);
    let layer = CircuitBreakerLayer::keyed("tools", settings, |n: &u32| *n).unwrap();
    let service = layer.layer(service_fn(|n: u32| async move {
        match n {
            0 => Err(Failure::new(Class::Unknown)),
            n => Ok(n),
        }
    }));

    service.clone().oneshot(0).await.unwrap_err();
    for n in 1..10 {
        service.clone().oneshot(n).await.unwrap();
    }

    assert_eq!(
        lines.take(),
        [
            "WARN circuit opened: circuit=tools key=\"0\" from=\"closed\" to=\"open\" \
             cause=\"consecutive_failures\" class=\"unknown\" trips=1 open_for=Some(30s)",
            "WARN no room for another circuit, new keys share one: circuit=tools max_keys=1",
        ],
    );
}

#[cfg(feature = "metrics")]
mod counters {
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex},
    };

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    #[derive(Default)]
    struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

    struct One(Arc<Mutex<BTreeMap<String, u64>>>, String);

    impl CounterFn for One {
        fn increment(&self, value: u64) {
            let mut counts = self.0.lock().expect("no test panicked in it");
            *counts.entry(self.1.clone()).or_default() += value;
        }

        fn absolute(&self, _: u64) {}
    }

    impl Recorder for Counts {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let labels = key
                .labels()
                .map(|it| format!(" {}={}", it.key(), it.value()));
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

    #[tokio::test(start_paused = true)]
    async fn changes_rejections_and_lost_probes_are_counted() {
        let (_lines, _listening) = listen();
        let recorder = Counts::default();
        let _guard = metrics::set_default_local_recorder(&recorder);

        let mut circuit = Circuit::opened(Settings::new()).await;
        circuit.rejected();
        circuit.rejected();
        advance(secs(30)).await;
        let _hung = circuit.passes();
        advance(secs(91)).await;
        circuit.succeed(1).await;

        let counts = recorder.0.lock().unwrap();
        let counts: Vec<_> = counts
            .iter()
            .map(|(name, n)| format!("{name}: {n}"))
            .collect();
        let all = "steadfast.circuit_breaker";
        assert_eq!(
            counts,
            [
                format!("{all}.probes_lost circuit=server: 1"),
                format!("{all}.rejected circuit=server observed=false: 2"),
                format!("{all}.transitions circuit=server to=closed cause=none: 1"),
                format!(
                    "{all}.transitions circuit=server to=half_open cause=consecutive_failures: 1"
                ),
                format!("{all}.transitions circuit=server to=open cause=consecutive_failures: 1"),
            ],
        );
    }
}
