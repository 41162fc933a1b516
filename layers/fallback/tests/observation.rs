//! The source of an answer is in the log and in a counter, and nothing private is.

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use steadfast_classify::{Call, Class, Effect, Failure, Origin};
use steadfast_fallback::{
    Bounds, Caller, Chain, FallbackLayer, Memory, Question, Recoverable, Settings,
};
use tower::{Layer as _, Service as _, service_fn};
use tracing::Level;

/// A read whose arguments and caller are nobody's business.
struct Ask(Arc<str>, Option<Failure>);

impl Call for Ask {
    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }
}

impl Recoverable<String> for Ask {
    fn server(&self) -> Option<&Arc<str>> {
        Some(&self.0)
    }

    fn question(&self) -> Option<Question> {
        let caller = Caller::only("private caller");
        Some(Question::new("fetch", &b"private argument"[..], caller))
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .map_err(|_| io::Error::other("a test panicked"))?
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One test at a time: which events somebody listens to is a matter of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(class: Class) -> Failure {
    Failure::new(class).with_origin(&Origin::server("library").with_operation("fetch"))
}

/// A live answer, one from the cache, a failure of each kind that nothing replaces.
fn four_calls() {
    let store = Memory::new(Bounds::new(), String::len).expect("the defaults are valid");
    let settings = Settings::new().with_explicit(true);
    let chain = Chain::new(settings, store)
        .expect("the defaults are valid")
        .untagged();
    let inner =
        service_fn(|ask: Ask| async move { ask.1.map_or(Ok("private answer".to_owned()), Err) });
    let mut service = FallbackLayer::new(chain).layer(inner);
    for (server, failure) in [
        ("library", None),
        ("library", Some(failure(Class::NotSent))),
        ("library", Some(failure(Class::Answered))),
        ("archive", Some(failure(Class::Timeout))),
    ] {
        let response = pin!(service.call(Ask(server.into(), failure)));
        let _ = response.poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn the_log_says_where_each_answer_came_from_and_nothing_private() {
    let _alone = alone();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();

    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("call", steadfast.source = tracing::field::Empty);
        span.in_scope(four_calls);
    });

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = log.lines().collect();
    for (line, level, fields) in [
        (0, "DEBUG", r#"answered source="live""#),
        (1, "INFO", r#"source="cache" age="#),
        (2, "DEBUG", r#"source="none" class="answered""#),
        (3, "DEBUG", r#"source="none" class="timeout""#),
    ] {
        assert!(lines[line].contains(level), "{log}");
        assert!(lines[line].contains(fields), "{log}");
    }
    assert!(lines[1].contains(r#"origin="fetch" on "library""#), "{log}");
    assert!(lines[1].contains(r#"steadfast.source="cache""#), "{log}");
    assert!(!log.contains("private"), "{log}");
}

#[test]
fn a_degraded_answer_is_a_warning() {
    let _alone = alone();
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let policy = |_: &Failure| Some("instead".to_owned());
    let inner = service_fn(|_: ()| async { Err::<String, _>(failure(Class::Timeout)) });
    let mut service = FallbackLayer::new(policy).layer(inner);

    tracing::subscriber::with_default(subscriber, || {
        let response = pin!(service.call(()));
        let _ = response.poll(&mut Context::from_waker(Waker::noop()));
    });

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        log.contains("WARN") && log.contains("source=degraded"),
        "{log}"
    );
}

#[cfg(feature = "metrics")]
mod counters {
    use std::collections::BTreeMap;

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

    struct One(Counts, String);

    impl CounterFn for One {
        fn increment(&self, value: u64) {
            let mut counts = self.0.0.lock().expect("no test panicked");
            *counts.entry(self.1.clone()).or_default() += value;
        }

        fn absolute(&self, value: u64) {
            let mut counts = self.0.0.lock().expect("no test panicked");
            counts.insert(self.1.clone(), value);
        }
    }

    impl Recorder for Counts {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let labels: Vec<_> = key
                .labels()
                .map(|label| format!("{}={}", label.key(), label.value()))
                .collect();
            let name = format!("{} {}", key.name(), labels.join(" "));
            Counter::from_arc(Arc::new(One(self.clone(), name)))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn each_call_is_counted_under_its_source() {
        let _alone = alone();
        let counts = Counts::default();

        metrics::with_local_recorder(&counts, four_calls);

        let counted = counts.0.lock().unwrap().clone();
        let want = [
            "steadfast.fallback.answers source=cache class=not_sent",
            "steadfast.fallback.answers source=live",
            "steadfast.fallback.answers source=none class=answered",
            "steadfast.fallback.answers source=none class=timeout",
        ]
        .map(|name| (name.to_owned(), 1));
        assert_eq!(counted, BTreeMap::from(want));
    }
}
