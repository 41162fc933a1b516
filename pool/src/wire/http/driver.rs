//! The task that takes a wire's messages, first in first out, and has each carried.

use std::{convert::Infallible, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::{FutureExt as _, join_all};
use http::Method;
use rmcp::model::{ClientNotification, JsonRpcMessage};
use tokio::{
    sync::{Semaphore, oneshot},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};
use tracing::debug;

use super::{
    super::exchange::{Outgoing, Tx},
    answer::drain,
    carrier::Carrier,
    headers, request,
    send::{Outbound, Payload},
};

/// How long the server may take to accept what it does not answer.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(5);

/// How many of those are on their way at once, and how many wait for that at most.
const NOTICES: usize = 32;
const MAX_NOTICES: usize = 1024;

/// How long requests may be held back by the cancels before them, which are to reach the
/// server first: what is repeated must not run beside what was cancelled.
const BEHIND_CANCELS: Duration = Duration::from_millis(250);

/// What the end of a connection may take: what is still to be said, and good-bye.
const LAST_NOTICES: Duration = Duration::from_millis(250);
const GOODBYE: Duration = Duration::from_secs(2);

/// The tasks that carry messages. Dropping it ends them.
struct Driver {
    carrier: Arc<Carrier>,
    requests: JoinSet<()>,
    notices: JoinSet<()>,
    slots: Arc<Semaphore>,
    cancels: Cancels,
}

/// Cancels that were taken, and may not be on their way yet.
struct Cancels {
    begun: Vec<oneshot::Receiver<Infallible>>,
    until: Instant,
}

/// Carries messages until the wire is closed; then says good-bye.
pub(super) async fn run(carrier: Arc<Carrier>) {
    let mut driver = Driver {
        carrier,
        requests: JoinSet::new(),
        notices: JoinSet::new(),
        slots: Arc::new(Semaphore::new(NOTICES)),
        cancels: Cancels {
            begun: Vec::new(),
            until: Instant::now(),
        },
    };
    driver.carry().await;
    driver.end().await;
}

// === impl Driver ===

impl Driver {
    async fn carry(&mut self) {
        let carrier = Arc::clone(&self.carrier);
        loop {
            let taken = tokio::select! {
                taken = carrier.wire.next_taken() => taken,
                // What has ended is let go of.
                Some(_) = self.requests.join_next() => continue,
                Some(_) = self.notices.join_next() => continue,
            };
            let Some((outgoing, given_up)) = taken else {
                return;
            };
            let Outgoing { message, id, .. } = outgoing;
            match id {
                Some(id) => {
                    self.cancels.passed().await;
                    let carrier = Arc::clone(&carrier);
                    self.requests
                        .spawn(request::run(carrier, message, id, given_up));
                }
                None => self.notify(message).await,
            }
        }
    }

    /// Sends what is not answered.
    async fn notify(&mut self, message: Tx) {
        let notification = match &message {
            JsonRpcMessage::Notification(notification) => Some(&notification.notification),
            _ => None,
        };
        match notification {
            // Nothing may be sent before the server has taken this.
            Some(ClientNotification::InitializedNotification(_)) => {
                let sent = self.carrier.notice(message, None);
                // A panic in what the user brought (a resolver) would end this task, and
                // with it everything that is carried.
                let _ = AssertUnwindSafe(sent).catch_unwind().await;
                self.carrier.ready.notify_one();
            }
            Some(ClientNotification::CancelledNotification(_)) => {
                // Where notices queue up, waiting for this one would only hold up requests.
                let prompt = self.notices.len() < NOTICES;
                let begun = prompt.then(|| self.cancels.next());
                self.spawn_notice(message, begun);
            }
            _ => self.spawn_notice(message, None),
        }
    }

    fn spawn_notice(&mut self, message: Tx, begun: Option<oneshot::Sender<Infallible>>) {
        if self.notices.len() >= MAX_NOTICES {
            debug!("the server does not take notices: one was dropped");
            return;
        }
        let carrier = Arc::clone(&self.carrier);
        let slots = Arc::clone(&self.slots);
        self.notices.spawn(async move {
            // Never closed, so there is no error.
            let _slot = slots.acquire().await;
            carrier.notice(message, begun).await;
        });
    }

    /// The wire is closed: whatever waits for an answer gets none.
    async fn end(mut self) {
        self.requests.abort_all();
        let notices = async { while self.notices.join_next().await.is_some() {} };
        let _ = timeout(LAST_NOTICES, notices).await;
        let _ = timeout(GOODBYE, self.carrier.goodbye()).await;
    }
}

// === impl Cancels ===

impl Cancels {
    fn next(&mut self) -> oneshot::Sender<Infallible> {
        let (begun, seen) = oneshot::channel();
        self.begun.push(seen);
        self.until = Instant::now() + BEHIND_CANCELS;
        begun
    }

    /// Resolves when all of them are on their way, or take too long.
    async fn passed(&mut self) {
        if !self.begun.is_empty() {
            let _ = timeout_at(self.until, join_all(self.begun.drain(..))).await;
        }
    }
}

// === impl Carrier ===

impl Carrier {
    /// Sends one message that is not answered. `begun` is dropped once it is on its way,
    /// or will never be.
    async fn notice(&self, message: Tx, begun: Option<oneshot::Sender<Infallible>>) {
        let Ok(bytes) = serde_json::to_vec(&message) else {
            return;
        };
        let sent = async {
            let sent = self.send(Outbound {
                method: Method::POST,
                headers: headers::of_message(&message, self.session.get(), &self.params),
                payload: Payload::Notice(Bytes::from(bytes), begun),
            });
            let Ok(response) = sent.await else { return };
            self.note_status(response.status());
            drain(response).await;
        };
        if timeout(ACCEPTED_WITHIN, sent).await.is_err() {
            debug!("the server did not take a notice in time");
        }
    }

    /// Ends the session, where there is one.
    async fn goodbye(&self) {
        if self.session_id().is_none() || self.wire.is_superseded() {
            return;
        }
        let sent = self.send(Outbound {
            method: Method::DELETE,
            headers: self.session_headers(),
            payload: Payload::Nothing,
        });
        // Whatever it says: it was told.
        if let Ok(response) = sent.await {
            drain(response).await;
        }
    }
}
