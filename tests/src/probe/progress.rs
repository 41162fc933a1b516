//! The time between executing and answering, and the notices sent meanwhile.

use std::future::pending;

use serde_json::{Value, json};

use super::knobs::{CallKnobs, ProgressKnobs, TokenSource};
use super::message;
use super::outbox::Outbox;
use super::pause::pause;
use super::server::Server;

/// Waits as long as the knobs say, and tells progress.
pub(crate) async fn linger(
    server: &Server,
    knobs: &CallKnobs,
    asked: Option<&Value>,
    out: &Outbox,
) {
    let delay = wait(server, knobs);
    let Some(progress) = &knobs.progress else {
        return delay.await;
    };
    let notices = notices(server, progress, asked, out);
    if progress.count.is_some() {
        tokio::join!(delay, notices);
    } else {
        tokio::select! {
            () = delay => {}
            () = notices => {}
        }
    }
}

async fn wait(server: &Server, knobs: &CallKnobs) {
    if knobs.stall {
        return pending().await;
    }
    let random = server.random(|random| {
        let is_slow = random.u8(0..100) < knobs.slow_percent;
        let slow = if is_slow { knobs.slow_ms } else { 0 };
        random.u64(0..=knobs.jitter_ms).saturating_add(slow)
    });
    pause(knobs.delay_ms.saturating_add(random)).await;
}

/// Ends when all are sent; without a `count` never.
async fn notices(server: &Server, knobs: &ProgressKnobs, asked: Option<&Value>, out: &Outbox) {
    // Without an end and without a pause the notices would fill the memory.
    let least = u64::from(knobs.count.is_none());
    let every_ms = knobs.every_ms.max(least);
    for number in 1..=knobs.count.unwrap_or(u64::MAX) {
        if every_ms == 0 {
            tokio::task::yield_now().await;
        }
        pause(every_ms).await;
        let token = match knobs.token {
            TokenSource::Asked => asked.cloned(),
            TokenSource::Invented => Some(json!(format!("invented-{number}"))),
            TokenSource::Finished => server.finished_token(),
        };
        if let Some(token) = token {
            let params = json!({ "progressToken": token, "progress": number });
            out.message(&message::notice("notifications/progress", &params));
        }
    }
}
