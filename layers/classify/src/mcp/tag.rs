//! Sources in tool results.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value};

use crate::{Cause, Source, Tag};

/// The `_meta` key under which a tool result says where it came from.
pub const SOURCE_META_KEY: &str = "io.github.steadfast/source";

// === impl Tag ===

/// Writes `_meta["io.github.steadfast/source"]`: `source`, for a cached answer `age_ms`,
/// and for anything but a live answer the `cause`.
impl Tag for CallToolResult {
    fn tag(&mut self, source: &Source, cause: Option<&Cause>) {
        let mut tag = Map::new();
        tag.insert("source".into(), source.as_str().into());
        if let Source::Cache { age } = source {
            tag.insert("age_ms".into(), millis(*age));
        }
        if let Some(cause) = cause {
            tag.insert("cause".into(), describe(cause));
        }
        self.meta
            .get_or_insert_with(MetaObject::new)
            .0
            .insert(SOURCE_META_KEY.into(), tag.into());
    }

    fn unavailable(cause: &Cause) -> Option<Self> {
        Some(Self::error(vec![ContentBlock::text(advice(cause))]))
    }

    fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }
}

fn describe(cause: &Cause) -> Value {
    let mut described = Map::new();
    described.insert("class".into(), cause.class.as_str().into());
    if let Some(phase) = cause.phase {
        described.insert("phase".into(), phase.as_str().into());
    }
    if let Some(after) = cause.retry_after {
        described.insert("retry_after_ms".into(), millis(after));
    }
    described.insert("attempts".into(), cause.attempts.into());
    described.insert("may_have_run".into(), cause.may_have_run.into());
    described.insert("message".into(), cause.message.as_str().into());
    described.into()
}

/// What a model has to know to go on sensibly.
fn advice(cause: &Cause) -> String {
    let mut text = format!("This tool is unavailable right now: {}.", cause.message);
    match cause.retry_after {
        _ if cause.permanent => text.push_str(" Do not call it again."),
        Some(after) => {
            let wait = match after.as_secs_f64().ceil() {
                seconds if seconds <= 1.0 => "a second".to_owned(),
                seconds => format!("{seconds} seconds"),
            };
            text.push_str(&format!(" Do not call it again for {wait}."));
        }
        None => text.push_str(" It may work again later."),
    }
    text.push_str(" No earlier answer is used in its place.");
    if cause.may_have_run {
        text.push_str(" The call may have taken effect: check whether it did before repeating it.");
    }
    text
}

fn millis(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .into()
}
