//! The stream of what belongs to no request.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use reqwest::Response;
use tokio::time::{Instant, sleep};
use tracing::debug;

use super::{
    answer::{Kind, MAX_ANSWER},
    carrier::Carrier,
    events::{Event, Events},
    request::EXPIRED,
};

/// The pause before a broken stream is opened again, which doubles from one to the other.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a stream must have been open for its end to count as the first.
const STEADY: Duration = Duration::from_secs(60);

/// What came of asking for the stream.
enum Opened {
    Stream(Response),
    /// The server has none.
    None,
    /// It may have one another time.
    NotNow,
}

/// Listens until the wire ends, or the server turns out to have nothing to say.
pub(super) async fn run(carrier: Arc<Carrier>) {
    carrier.ready.notified().await;
    // Without a session there is nothing that a stream could belong to.
    if !carrier.is_stateful() || carrier.session_id().is_none() {
        return;
    }
    tokio::select! {
        biased;
        _ = carrier.wire.ended() => {}
        _ = carrier.wire.superseded() => {}
        () = carrier.listen() => {}
    }
}

// === impl Carrier ===

impl Carrier {
    async fn listen(&self) {
        let mut events = Events::new(MAX_ANSWER);
        let mut pause = MIN_PAUSE;
        let mut missed = false;
        loop {
            let opened = Instant::now();
            match self.open_news(&events).await {
                // Where there was one, more than the stream may be gone.
                Opened::None if missed && self.refuses_pings().await => {
                    return self.wire.supersede(EXPIRED);
                }
                Opened::None => return,
                Opened::NotNow => {}
                Opened::Stream(response) => {
                    if missed {
                        // Whatever changed while nobody listened was not heard.
                        self.wire.note_all_changed();
                    }
                    missed = true;
                    self.news(response, &mut events).await;
                }
            }
            if opened.elapsed() >= STEADY {
                pause = MIN_PAUSE;
            }
            sleep(pause.max(events.retry().unwrap_or_default().min(MAX_PAUSE))).await;
            pause = (pause * 2).min(MAX_PAUSE);
            events.restart();
        }
    }

    async fn open_news(&self, events: &Events) -> Opened {
        let Ok(response) = self.open(events.last_id()).await else {
            return Opened::NotNow;
        };
        let status = response.status();
        match status {
            _ if status.is_success() && Kind::of(response.headers()) == Kind::Events => {
                Opened::Stream(response)
            }
            StatusCode::NOT_IMPLEMENTED => Opened::None,
            StatusCode::TOO_MANY_REQUESTS => Opened::NotNow,
            _ if status.is_server_error() => Opened::NotNow,
            _ => {
                debug!(%status, "the server has no stream of news");
                Opened::None
            }
        }
    }

    async fn news(&self, mut response: Response, events: &mut Events) {
        while let Ok(Some(chunk)) = response.chunk().await {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let (taken, event) = events.take(rest);
                rest = &rest[taken..];
                match event {
                    Some(Event::Message(message)) => self.deliver(&message, None, None).await,
                    Some(Event::Oversized) => drop(self.wire.exchange().note_oversized()),
                    Some(Event::Other) | None => {}
                }
            }
        }
    }
}
