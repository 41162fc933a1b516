//! The one extra key, `steadfast`: what a call to this server may take and repeat.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use steadfast_classify::{Effect, Limits};

/// What is set for all calls to a server, or for the calls of one of its tools.
///
/// A tool's settings win over its server's, one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallSettings {
    /// Limits that replace those of the layers.
    pub limits: Limits,
    /// Whether these are long tasks, which changes the limits that are not set:
    ///
    /// - `read` is 60 s, or what is set further out if that is more. It is re-armed by
    ///   each progress notice, so it is an idle limit.
    /// - `total` is 24 h, or what is set further out if that is more: the caller's own
    ///   deadline decides, and nothing waits for ever.
    /// - `attempt` is `total`.
    /// - `max_retries` is 0: a long task is not started a second time on its own.
    pub long: Option<bool>,
    /// What a call does, whatever the tool's annotations say.
    pub effect: Option<Effect>,
    /// Whether an old answer is acceptable when there is no new one.
    pub cacheable: Option<bool>,
}

/// What to do about idempotency keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdempotencyPolicy {
    /// Send none. The default: few servers know them.
    #[default]
    Off,
    /// Send one per logical call, the same on each attempt.
    Send,
    /// Send them to a server that is known to run each key once. This makes every call
    /// to it at least [`Effect::Idempotent`], unless its effect is set.
    Deduplicated,
}

// === impl IdempotencyPolicy ===

impl IdempotencyPolicy {
    /// Whether a key is sent with each call.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Deduplicated)
    }
}

/// What `steadfast` holds for one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) shared: Option<bool>,
    pub(crate) max_in_flight: Option<NonZeroU32>,
    pub(crate) idempotency: IdempotencyPolicy,
    pub(crate) calls: CallSettings,
    pub(crate) tools: BTreeMap<String, CallSettings>,
}

/// The limits of each tool, merged once.
#[derive(Debug, Default)]
pub(crate) struct LimitTable {
    server: Option<Arc<Limits>>,
    tools: BTreeMap<String, Option<Arc<Limits>>>,
}

const LONG_READ: Duration = Duration::from_secs(60);
const LONG_TOTAL: Duration = Duration::from_secs(24 * 60 * 60);

// === impl CallSettings ===

impl CallSettings {
    /// Nothing set.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            limits: Limits::new(),
            long: None,
            effect: None,
            cacheable: None,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Says whether these are long tasks; see [`long`](Self::long).
    #[must_use]
    pub const fn with_long(mut self, long: bool) -> Self {
        self.long = Some(long);
        self
    }

    /// Sets what a call does.
    #[must_use]
    pub const fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Says whether an old answer is acceptable.
    #[must_use]
    pub const fn with_cacheable(mut self, cacheable: bool) -> Self {
        self.cacheable = Some(cacheable);
        self
    }
}

// === impl Settings ===

impl Settings {
    /// The first answer of the tool's settings, then the server's.
    pub(crate) fn of<T>(&self, tool: &str, ask: impl Fn(&CallSettings) -> Option<T>) -> Option<T> {
        let tool = self.tools.get(tool).and_then(&ask);
        tool.or_else(|| ask(&self.calls))
    }
}

// === impl LimitTable ===

impl LimitTable {
    /// Merges tool over server over `timeout`.
    pub(crate) fn new(settings: &Settings, timeout: Option<Duration>) -> Self {
        let mut outermost = Limits::new();
        outermost.read = timeout;
        let server = &settings.calls;
        let tools = settings.tools.iter().map(|(name, tool)| {
            let merged = merge(tool, server, &outermost);
            (name.clone(), shared(merged))
        });
        Self {
            tools: tools.collect(),
            server: shared(merge(&CallSettings::new(), server, &outermost)),
        }
    }

    pub(crate) fn of(&self, tool: &str) -> Option<Arc<Limits>> {
        self.tools.get(tool).unwrap_or(&self.server).clone()
    }
}

fn merge(tool: &CallSettings, server: &CallSettings, outermost: &Limits) -> Limits {
    let tool_limits = tool.limits.clone();
    match (tool.long, server.long) {
        (Some(true), _) => long(tool_limits, &server.limits.clone().or(outermost)),
        (None, Some(true)) => long(tool_limits.or(&server.limits), outermost),
        (Some(false), _) | (None, Some(false) | None) => {
            tool_limits.or(&server.limits).or(outermost)
        }
    }
}

/// `set` where the task was called long, or nearer; `outer` further out. What was set
/// further out was meant for ordinary calls: it can lengthen a long task, never cut it.
fn long(set: Limits, outer: &Limits) -> Limits {
    let at_least = |least: Duration, outer: Option<Duration>| {
        Some(outer.map_or(least, |outer| outer.max(least)))
    };
    let mut limits = set;
    limits.connect = limits.connect.or(outer.connect);
    limits.read = limits.read.or(at_least(LONG_READ, outer.read));
    limits.total = limits.total.or(at_least(LONG_TOTAL, outer.total));
    limits.attempt = limits.attempt.or(limits.total);
    limits.max_retries = limits.max_retries.or(Some(0));
    limits
}

fn shared(limits: Limits) -> Option<Arc<Limits>> {
    (limits != Limits::new()).then(|| Arc::new(limits))
}
