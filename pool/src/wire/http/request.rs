//! One request, from its POST to the end of its response.

use std::{sync::Arc, thread};

use bytes::Bytes;
use http::{Method, StatusCode};
use reqwest::Response;
use rmcp::model::RequestId;
use steadfast_classify::{Class, Failure};
use tokio_util::sync::CancellationToken;

use super::{
    super::{exchange::Tx, refused::Refusal},
    answer::{Kind, MAX_ANSWER, ReadError, drain, read, read_error},
    carrier::Carrier,
    failure::{HttpFailed, NoAnswer, expired, not_sent},
    headers,
    send::{Outbound, Payload},
};

/// Why a session takes no more requests.
pub(super) const EXPIRED: &str = "the server has forgotten the session";

/// Ends a request whose task panicked, be it in a resolver that the user brought: its
/// caller would wait for nothing.
struct SettleOnPanic<'a>(&'a Carrier, &'a RequestId);

/// Carries a request until it is answered, settled or given up.
pub(super) async fn run(
    carrier: Arc<Carrier>,
    message: Tx,
    id: RequestId,
    given_up: CancellationToken,
) {
    let _guard = SettleOnPanic(&carrier, &id);
    let rest = tokio::select! {
        biased;
        rest = carrier.ask(&message, &id) => rest,
        // Dropping the exchange closes the stream.
        () = given_up.cancelled() => None,
    };
    if let Some(rest) = rest {
        drain(rest).await;
    }
}

// === impl Carrier ===

impl Carrier {
    /// Sends a request and delivers what comes back. However it goes, nobody waits for the
    /// request afterwards. Returns the rest of a response that is answered.
    async fn ask(&self, message: &Tx, id: &RequestId) -> Option<Response> {
        if self.wire.is_superseded() {
            self.wire.settle(id, |_| expired());
            return None;
        }
        let bytes = match serde_json::to_vec(message) {
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => {
                let failure = not_sent(error).with_permanent();
                self.wire.settle(id, |_| failure);
                return None;
            }
        };
        let sent = self.send(Outbound {
            method: Method::POST,
            headers: headers::of_message(message, self.session.get(), &self.params),
            payload: Payload::Request(id.clone(), bytes),
        });
        match sent.await {
            Ok(response) if response.status().is_success() => self.succeeded(id, response).await,
            Ok(response) => {
                self.refuse(id, response).await;
                None
            }
            Err(error) => {
                self.wire.settle(id, |begun| error.judge(begun));
                None
            }
        }
    }

    async fn succeeded(&self, id: &RequestId, response: Response) -> Option<Response> {
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            self.unknown(id, NoAnswer::Accepted(status.as_u16()));
            return Some(response);
        }
        match Kind::of(response.headers()) {
            Kind::Events => self.follow(id, response).await,
            Kind::Json => {
                self.whole(id, response).await;
                None
            }
            Kind::Other => {
                self.unknown(id, NoAnswer::NotJson);
                Some(response)
            }
        }
    }

    /// A response that is one piece of JSON.
    async fn whole(&self, id: &RequestId, response: Response) {
        let session = response.headers().get(headers::SESSION_ID).cloned();
        let body = match read(response, MAX_ANSWER).await {
            Ok(body) => body,
            Err(ReadError::TooLarge) => {
                return self.unknown(id, NoAnswer::TooLarge { max: MAX_ANSWER });
            }
            Err(ReadError::Broken(error)) => {
                let failed = HttpFailed::new("the server's answer broke off", error);
                let failure = Failure::new(Class::Unknown).with_source(failed);
                return self.wire.settle(id, |_| failure);
            }
        };
        self.deliver(&body, Some(id), session.as_ref()).await;
        let nothing = if body.trim_ascii().is_empty() {
            NoAnswer::Ended
        } else {
            NoAnswer::Foreign
        };
        self.unknown(id, nothing);
    }

    /// A response that is no success.
    async fn refuse(&self, id: &RequestId, response: Response) {
        let refusal = Refusal {
            status: response.status(),
            headers: response.headers().clone(),
            body: read_error(response).await,
            hush: self.hush(),
        };
        if self.is_forgotten(id, &refusal).await {
            self.wire.settle(id, |_| expired());
            return self.wire.supersede(EXPIRED);
        }
        self.wire.settle(id, |_| refusal.judge(id));
    }

    /// A message that belongs to no request was answered with this status.
    pub(super) fn note_status(&self, status: StatusCode) {
        if status == StatusCode::NOT_FOUND && self.session_id().is_some() {
            self.wire.supersede(EXPIRED);
        }
    }

    /// Ends a request, unless it was answered: it was sent, and nobody can tell.
    pub(super) fn unknown(&self, id: &RequestId, why: NoAnswer) {
        self.wire
            .settle(id, |_| Failure::new(Class::Unknown).with_source(why));
    }
}

// === impl SettleOnPanic ===

impl Drop for SettleOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(carrier, id) = self;
            carrier.unknown(id, NoAnswer::Ended);
        }
    }
}
