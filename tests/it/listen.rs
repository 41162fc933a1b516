//! Hears all logs of this process, and with feature `metrics` the names of all its numbers.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, Mutex, OnceLock},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    layer::{Context, SubscriberExt as _},
};

/// What keeps the messages themselves out of the logs of the library below.
pub(crate) const FILTER: &str = "trace,rmcp=warn";

/// What was heard since it was last taken.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<String>>);

/// All that listens in this process.
pub(crate) struct Ears {
    /// Every level of every library.
    pub(crate) all: Heard,
    /// What is left of that with [`FILTER`].
    pub(crate) filtered: Heard,
    /// Names and labels of numbers.
    pub(crate) numbers: Heard,
}

struct Fields<'a>(&'a mut String);

// === impl Heard ===

impl Heard {
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    fn note(&self, about: &str, fields: impl FnOnce(&mut Fields<'_>)) {
        let mut heard = self.0.lock().unwrap();
        *heard += about;
        fields(&mut Fields(&mut heard));
        heard.push('\n');
    }
}

impl<S: Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        self.note(&format!("{level} {target}"), |fields| event.record(fields));
    }

    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let about = format!("span {}", span.metadata().target());
        self.note(&about, |fields| span.record(fields));
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.note("span", |fields| values.record(fields));
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

// === impl Ears ===

impl Ears {
    /// Listens from now on; once for the whole process.
    pub(crate) fn open() -> &'static Self {
        static EARS: OnceLock<Ears> = OnceLock::new();
        EARS.get_or_init(|| {
            let ears = Self {
                all: Heard::default(),
                filtered: Heard::default(),
                numbers: Heard::default(),
            };
            let filtered = ears.filtered.clone().with_filter(EnvFilter::new(FILTER));
            let subscriber = Registry::default().with(ears.all.clone()).with(filtered);
            tracing::subscriber::set_global_default(subscriber).unwrap();
            #[cfg(feature = "metrics")]
            metrics::set_global_recorder(ears.numbers.clone()).unwrap();
            ears
        })
    }

    /// Forgets what was heard so far.
    pub(crate) fn clear(&self) {
        for heard in [&self.all, &self.filtered, &self.numbers] {
            heard.take();
        }
    }
}

#[cfg(feature = "metrics")]
mod numbers {
    use std::fmt::Write as _;

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::Heard;

    impl Heard {
        fn number(&self, key: &Key) {
            self.note(key.name(), |text| {
                for label in key.labels() {
                    let _ = write!(text.0, " {}={}", label.key(), label.value());
                }
            });
        }
    }

    impl Recorder for Heard {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            self.number(key);
            Counter::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            self.number(key);
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            self.number(key);
            Histogram::noop()
        }
    }
}
