//! Looks at the process table that those who ask at the same time share.

use std::{
    fmt, io, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};

use super::table::ProcessTable;

/// How long another thread may take to begin a look before it is taken on this one.
const TURN_LIMIT: Duration = Duration::from_millis(250);

/// What one look gave, for all who share it.
pub(super) type Look = Result<Arc<ProcessTable>, Arc<io::Error>>;

/// Reads the whole process table; less of those that started before the given time.
type Read = dyn Fn(u64) -> io::Result<ProcessTable> + Send + Sync;

/// Answers questions about the process table, many with one look.
///
/// A look answers exactly those who asked before it began: one that began before somebody sent
/// a signal proves nothing about what is alive after it. So whoever asks during a look waits
/// for the next, together with all others who do, and a hundred servers that end at once cost
/// a few looks and not hundreds. Clones are the same.
#[derive(Clone)]
pub(super) struct Census(Arc<Inner>);

struct Inner {
    read: Box<Read>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Question>,
    /// How many questions were ever asked, and how many of them a look has taken up.
    asked: u64,
    taken: u64,
    /// Somebody answers, or has been asked to.
    answering: bool,
}

struct Question {
    since: u64,
    answer: oneshot::Sender<Look>,
}

/// Who answers. However that ends, another one can.
struct Turn {
    inner: Arc<Inner>,
    done: bool,
}

// === impl Census ===

impl Census {
    pub(super) fn new(
        read: impl Fn(u64) -> io::Result<ProcessTable> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            read: Box::new(read),
            state: Mutex::default(),
        }))
    }

    /// A look that begins now, on this thread, for nobody else.
    pub(super) fn look_now(&self, since: u64) -> Look {
        self.0.read(since)
    }

    /// A look that begins after this is called, off the runtime's threads: a busy host has many
    /// processes. `since` is the start time of the oldest process of interest.
    ///
    /// Cancel safe.
    pub(super) async fn look(&self, since: u64) -> Look {
        let (number, mut answer) = self.0.ask(since);
        let answered = match timeout(TURN_LIMIT, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                // A host that fills all of these threads must not keep its servers from ending.
                self.0.answer_if_waiting(number);
                answer.await
            }
        };
        // Not answered: the runtime of whoever was to do it has ended.
        answered.unwrap_or_else(|_| self.look_now(since))
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Census").finish_non_exhaustive()
    }
}

// === impl Inner ===

impl Inner {
    fn read(&self, since: u64) -> Look {
        (self.read)(since).map(Arc::new).map_err(Arc::new)
    }

    fn ask(self: &Arc<Self>, since: u64) -> (u64, oneshot::Receiver<Look>) {
        let (answer, answered) = oneshot::channel();
        let (number, idle) = {
            let mut state = self.state();
            state.waiting.push(Question { since, answer });
            state.asked += 1;
            (state.asked, !mem::replace(&mut state.answering, true))
        };
        if idle {
            let turn = Turn {
                inner: Arc::clone(self),
                done: false,
            };
            // Not kept: it goes on without us.
            drop(spawn_blocking(move || turn.answer_all()));
        }
        (number, answered)
    }

    /// Takes the look itself that this question waits for, unless somebody has begun to.
    fn answer_if_waiting(&self, number: u64) {
        let questions = {
            let mut state = self.state();
            if state.taken >= number {
                return;
            }
            state.take()
        };
        self.answer(questions);
    }

    fn answer(&self, questions: Vec<Question>) {
        // Those who were dropped meanwhile need nothing read for them.
        let open = |question: &&Question| !question.answer.is_closed();
        let since = questions.iter().filter(open).map(|question| question.since);
        let Some(since) = since.min() else {
            return;
        };
        let look = self.read(since);
        for question in questions {
            // Nobody waits for it any more: then nobody misses it.
            let _ = question.answer.send(look.clone());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    /// All questions that a look which begins now answers.
    fn take(&mut self) -> Vec<Question> {
        self.taken = self.asked;
        mem::take(&mut self.waiting)
    }
}

// === impl Turn ===

impl Turn {
    fn answer_all(mut self) {
        while let Some(questions) = self.next() {
            self.inner.answer(questions);
        }
    }

    fn next(&mut self) -> Option<Vec<Question>> {
        let mut state = self.inner.state();
        if state.waiting.is_empty() {
            // Under the lock: whoever asks next sees that nobody answers.
            state.answering = false;
            self.done = true;
            return None;
        }
        Some(state.take())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let unanswered = {
            let mut state = self.inner.state();
            state.answering = false;
            state.take()
        };
        // It was never begun, or it panicked: who waits is told by the loss of the answer.
        drop(unanswered);
    }
}

#[cfg(test)]
mod tests;
