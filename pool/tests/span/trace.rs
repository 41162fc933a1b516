//! A subscriber that keeps what spans say.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Mutex, MutexGuard, Once, PoisonError},
};

use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

type Fields = BTreeMap<&'static str, String>;

/// Every span that has ended.
static ENDED: Mutex<Vec<Fields>> = Mutex::new(Vec::new());

struct Keep;

/// What a span says so far.
struct Kept(Fields);

struct Write<'a>(&'a mut Fields);

/// To be called first, by each test.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::registry().with(Keep).init());
}

/// The spans of requests to this server that have ended, in the order in which they did.
pub(crate) fn ended(server: &str) -> Vec<Fields> {
    let ours = |fields: &&Fields| fields.get("steadfast.server").is_some_and(|s| s == server);
    all().iter().filter(ours).cloned().collect()
}

fn all() -> MutexGuard<'static, Vec<Fields>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Keep ===

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keep {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::from([("name", attributes.metadata().name().to_owned())]);
        attributes.record(&mut Write(&mut fields));
        let span = context.span(id).expect("it is new");
        span.extensions_mut().insert(Kept(fields));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("it lives");
        if let Some(Kept(fields)) = span.extensions_mut().get_mut() {
            values.record(&mut Write(fields));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("it is still known");
        if let Some(Kept(fields)) = span.extensions_mut().remove() {
            all().push(fields);
        }
    }
}

// === impl Write ===

impl Visit for Write<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
