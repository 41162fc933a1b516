//! A call to a tool.

mod digest;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use rmcp::model::{CallToolResult, JsonObject};
use steadfast_classify::{
    Call, CallContext, Caller, Effect, Flight, Limits, Question, Recoverable,
};

use digest::digest;

use crate::{
    Round,
    ask::Owner,
    progress::{self, ProgressStream},
    ties::Ties,
};

/// A call to a tool of one server.
///
/// Cheap to clone: arguments are shared, and their digest is computed once, where it is
/// needed. It is tracked by default, so that a call that never left can be told from one
/// that may have run. Neither `Debug` nor any error shows the arguments.
///
/// Made by [`Lease::tool`](crate::Lease::tool), it knows what the configuration and the
/// server say about the tool; made by [`new`](Self::new) it is
/// [`NonIdempotent`](Effect::NonIdempotent) until told otherwise.
#[derive(Clone)]
pub struct ToolCall {
    server: Option<Arc<str>>,
    tool: Arc<str>,
    asker: Option<Arc<str>>,
    arguments: Option<Arc<Arguments>>,
    effect: Effect,
    cacheable: Option<bool>,
    send_key: bool,
    context: CallContext,
    ties: Option<Arc<Ties>>,
}

/// The arguments of a call with their digest beside them.
struct Arguments {
    object: JsonObject,
    digest: OnceLock<[u8; 32]>,
}

// === impl ToolCall ===

impl ToolCall {
    /// A call without arguments, of which nothing is known.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>) -> Self {
        Self {
            server: None,
            tool: tool.into(),
            asker: None,
            arguments: None,
            effect: Effect::NonIdempotent,
            cacheable: None,
            send_key: false,
            context: CallContext::tracked(),
            ties: None,
        }
    }

    /// Sets the arguments: a JSON object.
    ///
    /// ```
    /// # use steadfast_pool::ToolCall;
    /// let call = ToolCall::new("search").with_arguments(rmcp::object!({ "query": "tea" }));
    /// ```
    #[must_use]
    pub fn with_arguments(mut self, arguments: JsonObject) -> Self {
        self.arguments = Some(Arc::new(Arguments {
            object: arguments,
            digest: OnceLock::new(),
        }));
        self
    }

    /// Says what the call does. The caller's word goes before the configuration's and
    /// the server's.
    #[must_use]
    pub const fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Says whether an old answer is acceptable when there is no new one. Without it,
    /// only answers of read-only calls are kept.
    #[must_use]
    pub const fn with_cacheable(mut self, cacheable: bool) -> Self {
        self.cacheable = Some(cacheable);
        self
    }

    /// Gives the call limits of its own. Each one that is set replaces the configured
    /// one; the others stay.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        let limits = match self.context.limits() {
            Some(configured) => limits.or(configured),
            None => limits,
        };
        self.context.set_limits(Arc::new(limits));
        self
    }

    /// Sends the idempotency key of the logical call to the server, in `_meta`, the same
    /// on each attempt. Of use only with a server that knows it. Default: it is not sent.
    #[must_use]
    pub const fn with_idempotency_key(mut self, send: bool) -> Self {
        self.send_key = send;
        self
    }

    /// Asks for the progress of the call, all of its attempts. It costs the call nothing
    /// but a place in the memory: a stream that nobody reads drops what is too much.
    ///
    /// ```
    /// # use steadfast_pool::ToolCall;
    /// # async fn build(call: ToolCall) {
    /// let (call, mut progress) = call.with_progress();
    /// tokio::spawn(async move {
    ///     while let Some(step) = progress.next().await {
    ///         println!("{:?} of {:?}", step.progress, step.total);
    ///     }
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn with_progress(mut self) -> (Self, ProgressStream) {
        let (sender, stream) = progress::channel();
        self.ties = Some(Arc::new(Ties {
            progress: Some(Arc::new(sender)),
            ..Ties::default()
        }));
        (self, stream)
    }

    pub(crate) const fn ties(&self) -> Option<&Arc<Ties>> {
        self.ties.as_ref()
    }

    /// Ties this attempt of the call to its flight, and to its session if that answers
    /// questions.
    pub(crate) fn tie(&mut self, flight: &Flight, owner: Option<Arc<Owner>>) {
        let progress = self.ties.as_ref().and_then(|ties| ties.progress.clone());
        if progress.is_some() || owner.is_some() {
            self.ties = Some(Arc::new(Ties {
                progress,
                call: Some(flight.clone()),
                owner,
                round: None,
                attempt: self.context.attempt(),
            }));
        }
    }

    /// The same call with an answer to what the server asked.
    pub(crate) fn in_round(&self, round: Round, flight: &Flight) -> Self {
        let ties = self.ties.as_deref().cloned().unwrap_or_default();
        let mut call = self.clone();
        call.ties = Some(Arc::new(Ties {
            call: Some(flight.clone()),
            round: Some(round),
            ..ties
        }));
        call
    }

    /// What the server asked when it answered this call before, answered; `None` in the
    /// first request of a call.
    #[must_use]
    pub fn round(&self) -> Option<&Round> {
        self.ties.as_ref()?.round.as_ref()
    }

    pub(crate) fn for_server(mut self, server: Arc<str>, asker: Arc<str>) -> Self {
        self.server = Some(server);
        self.asker = Some(asker);
        self
    }

    pub(crate) fn with_configured_limits(mut self, limits: Option<Arc<Limits>>) -> Self {
        if let Some(limits) = limits {
            self.context.set_limits(limits);
        }
        self
    }

    pub(crate) const fn with_configured_cacheable(mut self, cacheable: Option<bool>) -> Self {
        self.cacheable = cacheable;
        self
    }

    /// The server it is for, if it was made by a lease.
    #[must_use]
    pub const fn server(&self) -> Option<&Arc<str>> {
        self.server.as_ref()
    }

    /// The tool.
    #[must_use]
    pub const fn tool(&self) -> &Arc<str> {
        &self.tool
    }

    /// The session that asks, if it was made by a lease.
    #[must_use]
    pub const fn asker(&self) -> Option<&Arc<str>> {
        self.asker.as_ref()
    }

    /// The arguments, if there are any.
    #[must_use]
    pub fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.as_ref().map(|arguments| &arguments.object)
    }

    /// Whether an old answer is acceptable; `None` leaves that to the effect.
    #[must_use]
    pub const fn cacheable(&self) -> Option<bool> {
        self.cacheable
    }

    /// Whether the idempotency key is to be sent.
    #[must_use]
    pub const fn sends_idempotency_key(&self) -> bool {
        self.send_key
    }

    /// A digest of the arguments: equal for arguments that are equal as JSON, whatever
    /// the order of their members. Computed on first use and shared by all clones.
    #[must_use]
    pub fn arguments_digest(&self) -> [u8; 32] {
        match &self.arguments {
            None => digest(&JsonObject::new()),
            Some(arguments) => *arguments.digest.get_or_init(|| digest(&arguments.object)),
        }
    }
}

impl Call for ToolCall {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

/// Kept apart by session: what one was told is not given to another.
impl Recoverable<CallToolResult> for ToolCall {
    fn server(&self) -> Option<&Arc<str>> {
        self.server.as_ref()
    }

    fn question(&self) -> Option<Question> {
        let caller = Caller::only(Arc::clone(self.asker.as_ref()?));
        let arguments = self.arguments_digest();
        Some(Question::new(Arc::clone(&self.tool), arguments, caller))
    }

    fn cacheable(&self) -> Option<bool> {
        self.cacheable
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("effect", &self.effect)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
