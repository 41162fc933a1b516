//! Responses that are a stream of events.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use reqwest::Response;
use rmcp::model::RequestId;
use tokio::time::sleep;

use super::{
    answer::{Kind, MAX_ANSWER, drain},
    carrier::Carrier,
    events::{Event, Events},
    failure::NoAnswer,
    headers,
    send::{Outbound, Payload, SendError},
};

/// How often a stream is resumed without a new event in between.
const MAX_RESUMES: u32 = 5;

/// The pause before a stream is resumed, where the server names none, and within which
/// bounds it may name one.
const PAUSE: Duration = Duration::from_secs(1);
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// How reading a stream of a request went.
enum Followed {
    /// The request is answered, or settled.
    Done(Response),
    /// The stream ended or broke before that; whether anything new had come.
    Over { news: bool },
}

// === impl Carrier ===

impl Carrier {
    /// Reads the stream that answers a request, and resumes it where it breaks and can be.
    /// Returns the rest of the response once the request is answered.
    pub(super) async fn follow(&self, id: &RequestId, response: Response) -> Option<Response> {
        let mut events = Events::new(MAX_ANSWER);
        let mut response = response;
        let mut resumes = 0;
        loop {
            match self.events(id, response, &mut events).await {
                Followed::Done(rest) => return Some(rest),
                Followed::Over { news: true } => resumes = 0,
                Followed::Over { news: false } => {}
            }
            if !self.is_stateful() || events.last_id().is_none() {
                self.unknown(id, NoAnswer::Ended);
                return None;
            }
            events.restart();
            match self.resume(&events, &mut resumes).await {
                Ok(resumed) => response = resumed,
                Err(why) => {
                    self.unknown(id, why);
                    return None;
                }
            }
        }
    }

    async fn events(
        &self,
        id: &RequestId,
        mut response: Response,
        events: &mut Events,
    ) -> Followed {
        let session = response.headers().get(headers::SESSION_ID).cloned();
        let before = events.last_id().map(str::to_owned);
        let mut news = false;
        // An error and an end are the same here: there is no more of it.
        while let Ok(Some(chunk)) = response.chunk().await {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let (taken, event) = events.take(rest);
                rest = &rest[taken..];
                // The same event once more, or one without a name or data, is nothing new:
                // a server could go on like that for ever.
                news |= matches!(event, Some(Event::Message(_)));
                match event {
                    Some(Event::Message(message)) => {
                        self.deliver(&message, Some(id), session.as_ref()).await;
                    }
                    Some(Event::Oversized) => {
                        self.wire.exchange().note_oversized();
                        self.unknown(id, NoAnswer::TooLarge { max: MAX_ANSWER });
                    }
                    Some(Event::Other) | None => {}
                }
            }
            if !self.wire.is_pending(id) {
                return Followed::Done(response);
            }
        }
        Followed::Over {
            news: news || events.last_id() != before.as_deref(),
        }
    }

    /// Opens the stream again behind the last event. A server that cannot be reached, or
    /// is in trouble, is tried again.
    async fn resume(&self, events: &Events, resumes: &mut u32) -> Result<Response, NoAnswer> {
        let pause = events.retry().unwrap_or(PAUSE).clamp(MIN_PAUSE, MAX_PAUSE);
        while *resumes < MAX_RESUMES {
            *resumes += 1;
            sleep(pause).await;
            let Ok(response) = self.open(events.last_id()).await else {
                continue;
            };
            let status = response.status();
            if status.is_success() && Kind::of(response.headers()) == Kind::Events {
                return Ok(response);
            }
            let refused = !status.is_server_error() && status != StatusCode::TOO_MANY_REQUESTS;
            drain(response).await;
            if refused {
                return Err(NoAnswer::ResumeRefused(status.as_u16()));
            }
        }
        Err(NoAnswer::NotResumed)
    }

    /// Asks for a stream of events, behind the one with this id if it is given.
    pub(super) async fn open(&self, last_id: Option<&str>) -> Result<Response, SendError> {
        self.send(Outbound {
            method: Method::GET,
            headers: headers::of_stream(self.session.get(), last_id),
            payload: Payload::Nothing,
        })
        .await
    }

    /// The headers of a request about the session as a whole.
    pub(super) fn session_headers(&self) -> HeaderMap {
        headers::of_session(self.session.get())
    }
}
