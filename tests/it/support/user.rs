//! A user who answers what servers ask.

use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use steadfast::{
    pool::{AskHandler, Asking, Offers},
    rmcp::model::{
        CallToolResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    },
};

/// Remembers who was asked what, and accepts in the name of their session.
#[derive(Clone, Default)]
pub(crate) struct User(Arc<Mutex<Vec<(Asking, String)>>>);

// === impl User ===

impl User {
    pub(crate) fn asked(&self) -> Vec<(Asking, String)> {
        self.0.lock().unwrap().clone()
    }
}

impl AskHandler for User {
    fn offers(&self) -> Offers {
        Offers::none().with_forms()
    }

    fn elicit<'a>(
        &'a self,
        asking: Asking,
        question: ElicitRequestParams,
    ) -> BoxFuture<'a, Result<ElicitResult, ErrorData>> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = question else {
            panic!("only forms are offered");
        };
        let by = format!("{}'s", asking.session);
        self.0.lock().unwrap().push((asking, message));
        let result = ElicitResult::new(ElicitationAction::Accept);
        async move { Ok(result.with_content(json!({"by": by}))) }.boxed()
    }
}

/// A request for a form, as a server sends it.
pub(crate) fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": message, "requestedSchema": {"type": "object", "properties": {}}}})
}

/// A member of the probe's own account of a call.
pub(crate) fn told(answer: &CallToolResult, what: &str) -> Value {
    let account = answer.structured_content.as_ref();
    account
        .and_then(|account| account.get(what))
        .cloned()
        .unwrap_or_default()
}
