//! One question, and its answer.

#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt as _;
use rmcp::model::{
    CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod, ErrorData,
};
use serde_json::Value;

use super::{AskHandler, Asking};

/// Why a call ended that asked for something before it could go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// The session answers no such questions.
    #[error("the server asks for input, and nobody here can give it")]
    Nobody,
    /// Whoever was asked gave no answer, but this error code.
    #[error("the server asks for input, and got none (code {0})")]
    Refused(i32),
    /// It asked for more at once than anybody would answer.
    #[error("the server asks for too much at once")]
    TooMuch,
    /// It asked again and again.
    #[error("the server asks for input again and again")]
    Endless,
}

/// How many questions may be open at once on the connections of one key, and in one answer.
pub(crate) const MOST_OPEN: usize = 64;

/// What a server may ask of a session.
pub(crate) enum Question {
    Elicit(ElicitRequestParams),
    Sample(Box<CreateMessageRequestParams>),
}

/// What it is told.
pub(crate) enum Reply {
    Elicited(ElicitResult),
    Sampled(Box<CreateMessageResult>),
}

// === impl Question ===

impl Question {
    /// Asks. What the handler does not offer it is not asked; and one that panics has
    /// answered too.
    pub(crate) async fn put_to(
        self,
        handler: Arc<dyn AskHandler>,
        asking: Asking,
    ) -> Result<Reply, ErrorData> {
        let ask = async move {
            let offers = handler.offers();
            match self {
                Self::Elicit(question) => {
                    let offered = match question {
                        ElicitRequestParams::FormElicitationParams { .. } => offers.forms,
                        ElicitRequestParams::UrlElicitationParams { .. } => offers.urls,
                        _ => false,
                    };
                    if !offered {
                        return Err(
                            ErrorData::method_not_found::<ElicitationCreateRequestMethod>(),
                        );
                    }
                    handler.elicit(asking, question).await.map(Reply::Elicited)
                }
                Self::Sample(request) => {
                    if !offers.sampling {
                        return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
                    }
                    let sampled = handler.sample(asking, *request).await;
                    sampled.map(Box::new).map(Reply::Sampled)
                }
            }
        };
        let asked = AssertUnwindSafe(ask).catch_unwind().await;
        asked.unwrap_or_else(|_| Err(ErrorData::internal_error("nobody could answer", None)))
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn into_value(self) -> serde_json::Result<Value> {
        match self {
            Self::Elicited(result) => serde_json::to_value(result),
            Self::Sampled(result) => serde_json::to_value(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use serde_json::json;

    use super::*;
    use crate::Offers;

    /// Panics where it is told to.
    struct Faulty {
        offers: bool,
    }

    impl AskHandler for Faulty {
        fn offers(&self) -> Offers {
            assert!(!self.offers, "a handler with a fault");
            Offers::none().with_forms()
        }

        fn elicit<'a>(
            &'a self,
            _: Asking,
            _: ElicitRequestParams,
        ) -> BoxFuture<'a, Result<ElicitResult, ErrorData>> {
            panic!("a handler with a fault");
        }
    }

    #[tokio::test]
    async fn handler_that_panics_has_answered() {
        for offers in [true, false] {
            let asked = json!({"message": "?", "requestedSchema": {"type": "object",
                "properties": {}}});
            let question = Question::Elicit(serde_json::from_value(asked).unwrap());
            let asking = Asking {
                session: "a".into(),
                server: "s".into(),
                tool: None,
            };

            let answer = question.put_to(Arc::new(Faulty { offers }), asking).await;

            let error = answer.map(|_| ()).unwrap_err();
            assert_eq!(error.code.0, -32603, "{offers}");
        }
    }
}
