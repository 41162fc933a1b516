//! What is sent about one request, kept until it has been delivered.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::super::outbox::Out;

/// Grows while a request runs; each reader has a place of its own in it.
#[derive(Debug)]
pub(crate) struct Stream {
    said: watch::Sender<Said>,
}

#[derive(Debug, Default)]
struct Said {
    parts: Vec<Arc<Out>>,
    is_over: bool,
}

// === impl Stream ===

impl Stream {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            said: watch::Sender::default(),
        })
    }

    /// Takes in what comes, until nobody is left who could say more.
    pub(crate) async fn fill(self: Arc<Self>, mut queue: mpsc::UnboundedReceiver<Out>) {
        while let Some(out) = queue.recv().await {
            self.said.send_modify(|said| said.parts.push(Arc::new(out)));
        }
        self.said.send_modify(|said| said.is_over = true);
    }

    /// The part at `place`, once it is there; `None` if it never comes.
    pub(crate) async fn part(&self, place: usize) -> Option<Arc<Out>> {
        let mut said = self.said.subscribe();
        let said = said.wait_for(|said| said.is_over || said.parts.len() > place);
        said.await.ok()?.parts.get(place).cloned()
    }

    /// Returns once the answer is there, or never comes.
    pub(crate) async fn answer(&self) -> Option<Arc<Out>> {
        let mut place = 0;
        while let Some(part) = self.part(place).await {
            if matches!(*part, Out::Answer(_) | Out::Torn(_)) {
                return Some(part);
            }
            place += 1;
        }
        None
    }
}
