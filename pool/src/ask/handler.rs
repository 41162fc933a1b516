//! Who answers what a server asks.

#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use rmcp::model::{
    CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod, ErrorData,
};

/// Answers what servers ask of one session: its user, or its model.
///
/// A question comes here only with a proof that it is this session's: the server asked in
/// its answer to a call of this session, in the stream of that answer, about a task that a
/// call of it began, or over a connection that only this session has. Any other is refused
/// without asking anybody.
///
/// While it is answered, the call that it is about does not run out of its read limit;
/// where nothing tells which one that is, no call of the session on that connection does.
/// The limits on the attempt and on the whole call stand. When the call, the session or the
/// connection ends, the answer's future is dropped, and the server is told that there is
/// none. One that is about no call is dropped after 5 min.
///
/// What is not offered is refused; by default, nothing is.
pub trait AskHandler: Send + Sync + 'static {
    /// What it answers. Asked when a connection is made: what a session's own connections
    /// announce stays the same for as long as they last.
    fn offers(&self) -> Offers {
        Offers::none()
    }

    /// Asks the user. Whoever waits may be gone before there is an answer: then the future
    /// is dropped.
    ///
    /// # Errors
    ///
    /// An error is what the server is told; in an answer to a call it ends that call. The
    /// user's "no" is none: it is [`ElicitResult`]'s `Decline`.
    fn elicit<'a>(
        &'a self,
        asking: Asking,
        question: ElicitRequestParams,
    ) -> BoxFuture<'a, Result<ElicitResult, ErrorData>> {
        let _ = (asking, question);
        future::err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>()).boxed()
    }

    /// Asks the model.
    ///
    /// # Errors
    ///
    /// As [`elicit`](Self::elicit).
    fn sample<'a>(
        &'a self,
        asking: Asking,
        request: CreateMessageRequestParams,
    ) -> BoxFuture<'a, Result<CreateMessageResult, ErrorData>> {
        let _ = (asking, request);
        future::err(ErrorData::method_not_found::<CreateMessageRequestMethod>()).boxed()
    }
}

/// What a session answers, so that it can be announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offers {
    /// Forms for the user ([`AskHandler::elicit`]).
    pub forms: bool,
    /// Addresses that the user is sent to ([`AskHandler::elicit`]).
    pub urls: bool,
    /// Questions to the model ([`AskHandler::sample`]).
    pub sampling: bool,
}

/// Who asks, and about what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asking {
    /// The session that is asked.
    pub session: Arc<str>,
    /// The server that asks.
    pub server: Arc<str>,
    /// The tool whose call it is about, where that is known.
    pub tool: Option<Arc<str>>,
}

// === impl Offers ===

impl Offers {
    /// Nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            forms: false,
            urls: false,
            sampling: false,
        }
    }

    /// Forms for the user too.
    #[must_use]
    pub const fn with_forms(mut self) -> Self {
        self.forms = true;
        self
    }

    /// Addresses that the user is sent to too.
    #[must_use]
    pub const fn with_urls(mut self) -> Self {
        self.urls = true;
        self
    }

    /// Questions to the model too.
    #[must_use]
    pub const fn with_sampling(mut self) -> Self {
        self.sampling = true;
        self
    }
}
