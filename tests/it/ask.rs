//! A request that is no tool call, and a service that does what a script says.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use steadfast::{Call, CallContext, Class, Effect, Failure};
use steadfast::{
    classify::{Caller, Question, Recoverable},
    fallback::{Bounds, Chain, Memory, Settings, Untagged},
};
use tokio::time::sleep;
use tower::Service;

/// Asks the server `shop` about something.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) about: &'static str,
    pub(crate) effect: Effect,
    pub(crate) context: CallContext,
    server: Arc<str>,
}

/// What one attempt meets.
#[derive(Clone, Debug)]
pub(crate) enum Meets {
    Answer(u64),
    /// A failure of this class, after 10 ms.
    Fails(Class),
    /// The server asks to be left alone for so long.
    Busy(Duration),
    /// Nothing, for ever.
    Silence,
}

/// Answers each attempt with the next line of its script, and with `0` after the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    lines: Arc<Mutex<VecDeque<Meets>>>,
    attempts: Arc<AtomicU32>,
}

// === impl Ask ===

impl Ask {
    pub(crate) fn new(about: &'static str, effect: Effect) -> Self {
        Self {
            about,
            effect,
            context: CallContext::new(),
            server: "shop".into(),
        }
    }
}

impl Call for Ask {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

impl Recoverable<u64> for Ask {
    fn server(&self) -> Option<&Arc<str>> {
        Some(&self.server)
    }

    fn question(&self) -> Option<Question> {
        let about = self.about.as_bytes();
        Some(Question::new(self.about, about, Caller::Anyone))
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn play_next(&self, lines: impl IntoIterator<Item = Meets>) {
        let mut script = self.lines.lock().unwrap();
        script.clear();
        script.extend(lines);
    }

    /// How many attempts have reached the service.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub(crate) async fn play(self) -> Result<u64, Failure> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        let line = self.lines.lock().unwrap().pop_front();
        match line {
            None => Ok(0),
            Some(Meets::Answer(answer)) => Ok(answer),
            Some(Meets::Fails(class)) => {
                sleep(Duration::from_millis(10)).await;
                Err(Failure::new(class))
            }
            Some(Meets::Busy(after)) => {
                Err(Failure::new(Class::Overloaded).with_retry_after(after))
            }
            Some(Meets::Silence) => std::future::pending().await,
        }
    }
}

impl Service<Ask> for Script {
    type Response = u64;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Ask) -> Self::Future {
        Box::pin(self.clone().play())
    }
}

/// Old answers for failed reads, and the failure where there is none.
pub(crate) fn last_good() -> Chain<Memory<u64>, Untagged> {
    let store = Memory::new(Bounds::new(), |_: &u64| 8).expect("in order");
    Chain::new(Settings::new(), store)
        .expect("in order")
        .untagged()
}
