//! Carries a wire's messages over streamable HTTP.
//!
//! ```text
//!           ┌─ one task per request: POST ─► JSON, or a stream of events (resumed by GET)
//! outbox ─► driver ─ notices: POST, bounded
//!           └─ at the end: DELETE of the session
//! inbox  ◄─ all of them, and the listener: a GET for what belongs to no request
//! ```
//!
//! A request counts as sent from the moment the first byte of its body is asked for: the
//! connection stands by then, and a request without its body cannot have run. Nothing
//! below repeats a request that was begun. What came back is judged here, where status,
//! headers and body are known, and a request always ends when there is nothing left that
//! could answer it.

mod answer;
mod body;
mod carrier;
mod credentials;
mod driver;
mod events;
mod failure;
mod forgotten;
mod headers;
mod listener;
mod params;
mod redirect;
mod request;
mod send;
mod session;
mod stream;
mod target;

use std::{sync::Arc, time::Duration};

use rmcp::model::RequestId;
use steadfast_classify::Failure;
use tokio_util::sync::CancellationToken;

use super::{
    Wire, WireTasks, WireTransport,
    exchange::{Outgoing, Taken},
};

use carrier::Carrier;

pub(crate) use credentials::Credentials;
pub(crate) use target::{InvalidTarget, Target, url};

pub use credentials::{Authorize, AuthorizeError, Rejected};
pub use failure::HttpFailed;

/// How long a closing wire may take in all to tell the server so.
const GOODBYE: Duration = Duration::from_millis(2500);

/// Starts the tasks that carry a wire to `target`. Must be called within a tokio runtime.
pub(crate) fn carry(target: Target) -> (Arc<Wire>, WireTasks, WireTransport) {
    let (wire, inbox, transport) = Wire::open();
    let carrier = Arc::new(Carrier::new(&wire, inbox, target));
    let listener = tokio::spawn(listener::run(Arc::clone(&carrier)));
    let driver = tokio::spawn(driver::run(carrier));
    let tasks = WireTasks::new(&wire, &listener, driver, GOODBYE);
    (wire, tasks, transport)
}

// === impl Wire ===

impl Wire {
    /// The next message to carry; `None` once the wire is closed and the outbox is empty.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, no message is lost.
    async fn next_taken(&self) -> Option<(Outgoing, CancellationToken)> {
        loop {
            // A variable of its own: the lock is not held over the wait.
            let taken = self.exchange().take_next();
            match taken {
                Taken::Message(outgoing, token) => return Some((outgoing, token)),
                Taken::Closed => return None,
                Taken::Empty => self.queued.notified().await,
            }
        }
    }

    /// Asked just before the first byte of a request's body. `false`: it must not be sent.
    fn begin(&self, id: &RequestId) -> bool {
        self.exchange().begin(id)
    }

    /// The server refused a request before it ran it: it may be begun again.
    fn refused(&self, id: &RequestId) {
        self.exchange().refused(id);
    }

    /// Ends a request that will have no answer, if it has none yet; `judge` is told
    /// whether it was begun to be sent.
    fn settle(&self, id: &RequestId, judge: impl FnOnce(bool) -> Failure) {
        let reply = self.exchange().settle(id, judge);
        self.reply(reply);
    }

    fn is_pending(&self, id: &RequestId) -> bool {
        self.exchange().is_pending(id)
    }

    /// What became of the request that the handshake made, if it was not an answer.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.exchange().refusal()
    }
}
