//! A user, and their model, who answer.
#![expect(deprecated, reason = "a part of the protocol that servers still use")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, SamplingMessage,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{AskHandler, Asking, Offers};

/// Answers everything with its own name, after some time. Its clones are the same user.
#[derive(Clone)]
pub(super) struct User {
    name: &'static str,
    thinks: Duration,
    refuses: bool,
    offers: Offers,
    asked: Arc<Mutex<Vec<(Asking, String)>>>,
    /// How many are being thought about.
    open: Arc<AtomicUsize>,
}

/// One question that is being thought about.
struct Open(Arc<AtomicUsize>);

// === impl User ===

impl User {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            thinks: Duration::from_millis(5),
            refuses: false,
            offers: Offers::none().with_forms().with_sampling(),
            asked: Arc::default(),
            open: Arc::default(),
        }
    }

    pub(super) fn thinking(mut self, thinks: Duration) -> Self {
        self.thinks = thinks;
        self
    }

    pub(super) fn refusing(mut self) -> Self {
        self.refuses = true;
        self
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    /// Who asked what.
    pub(super) fn asked(&self) -> Vec<(Asking, String)> {
        self.asked.lock().expect("no test panics under it").clone()
    }

    /// Whether anybody else holds this user.
    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.asked) > 1
    }

    pub(super) fn is_thinking(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    fn note(&self, asking: Asking, question: String) {
        let mut asked = self.asked.lock().expect("no test panics under it");
        asked.push((asking, question));
    }

    async fn answer(&self, asking: Asking, question: String) -> Result<String, ErrorData> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let _open = Open(Arc::clone(&self.open));
        let answer = format!("{} says yes to {question}", self.name);
        self.note(asking, question);
        sleep(self.thinks).await;
        if self.refuses {
            return Err(ErrorData::new(rmcp::model::ErrorCode(-32_000), "no", None));
        }
        Ok(answer)
    }
}

impl AskHandler for User {
    fn offers(&self) -> Offers {
        self.offers
    }

    fn elicit<'a>(
        &'a self,
        asking: Asking,
        question: ElicitRequestParams,
    ) -> BoxFuture<'a, Result<ElicitResult, ErrorData>> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = question else {
            panic!("only forms are offered");
        };
        async move {
            let answer = self.answer(asking, message).await?;
            let result = ElicitResult::new(ElicitationAction::Accept);
            Ok(result.with_content(json!({"answer": answer})))
        }
        .boxed()
    }

    fn sample<'a>(
        &'a self,
        asking: Asking,
        request: CreateMessageRequestParams,
    ) -> BoxFuture<'a, Result<CreateMessageResult, ErrorData>> {
        async move {
            let question: Value = serde_json::to_value(&request.messages[0]).expect("it is JSON");
            let text = question["content"]["text"].as_str().unwrap_or_default();
            let answer = self.answer(asking, text.to_owned()).await?;
            let message = SamplingMessage::assistant_text(answer);
            Ok(CreateMessageResult::new(message, "test".to_owned()))
        }
        .boxed()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request for a form, as a server sends it.
pub(super) fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": message, "requestedSchema": {"type": "object", "properties": {}}}})
}

/// A question to the model, as a server sends it.
pub(super) fn prompt(text: &str) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        "maxTokens": 10}})
}
