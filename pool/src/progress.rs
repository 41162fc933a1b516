//! Progress, on its way to whoever made the call.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::{Stream, future::poll_fn, task::AtomicWaker};

/// How many reports wait for a reader who takes their time.
const KEPT: usize = 16;

/// What a server told of a call that runs.
///
/// `Debug` does not show the message, which is the server's word about the call.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How far it is. It should grow; a second attempt begins anew. `None` where the server
    /// only said something: the status of a task.
    pub progress: Option<f64>,
    /// How far it has to go, where the server knows.
    pub total: Option<f64>,
    /// What it is doing, in the server's words.
    pub message: Option<String>,
    /// Which attempt of the call it is about, from 1; 0 where no retry layer counts them.
    pub attempt: u32,
}

/// The progress of one call, all of its attempts.
///
/// It never holds the server up: of what is not read in time, the oldest is dropped, and
/// counted by [`missed`](Self::missed). It ends with the call: when the last clone of the
/// [`ToolCall`](crate::ToolCall) that it came with is gone.
pub struct ProgressStream(Arc<Shared>);

/// Where the wire puts progress. Its clones are held by the call's clones.
pub(crate) struct ProgressSender(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    reader: AtomicWaker,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Progress>,
    missed: u64,
    over: bool,
}

/// Both ends of the progress of one call.
pub(crate) fn channel() -> (ProgressSender, ProgressStream) {
    let shared = Arc::new(Shared::default());
    (ProgressSender(Arc::clone(&shared)), ProgressStream(shared))
}

// === impl ProgressSender ===

impl ProgressSender {
    pub(crate) fn send(&self, progress: Progress) {
        {
            let mut state = self.0.state();
            if state.waiting.len() == KEPT {
                state.waiting.pop_front();
                state.missed += 1;
            }
            state.waiting.push_back(progress);
        }
        self.0.reader.wake();
    }
}

impl Drop for ProgressSender {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.reader.wake();
    }
}

impl fmt::Debug for ProgressSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressSender")
    }
}

// === impl ProgressStream ===

impl ProgressStream {
    /// The next report; `None` once the call is over.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Progress> {
        poll_fn(|cx| self.0.poll(cx)).await
    }

    /// How many reports were dropped because they were not read in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.0.state().missed
    }
}

impl Stream for ProgressStream {
    type Item = Progress;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        self.0.poll(cx)
    }
}

impl fmt::Debug for ProgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state();
        f.debug_struct("ProgressStream")
            .field("waiting", &state.waiting.len())
            .field("missed", &state.missed)
            .field("over", &state.over)
            .finish()
    }
}

// === impl Shared ===

impl Shared {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Progress>> {
        // Before the look, so that what comes right after it wakes us.
        self.reader.register(cx.waker());
        let mut state = self.state();
        match state.waiting.pop_front() {
            None if !state.over => Poll::Pending,
            next => Poll::Ready(next),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Progress ===

impl Progress {
    /// Something that the server said, and no number.
    pub(crate) const fn said(message: Option<String>) -> Self {
        Self {
            progress: None,
            total: None,
            message,
            attempt: 0,
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("progress", &self.progress)
            .field("total", &self.total)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
