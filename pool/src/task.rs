//! When to ask about a task, and when to stop. Pure: it is told what time it is.

use std::time::Duration;

use rmcp::model::Task;
use steadfast_classify::Failure;
use tokio::time::Instant;

use crate::time::after;

/// How a task ended without a result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskEnded {
    /// It lived longer than the server keeps it.
    #[error("the task expired before it was done")]
    Expired,
    /// The server does not know it any more.
    #[error("the server does not know the task any more")]
    Unknown,
    /// It was cancelled, and not by us.
    #[error("the task was cancelled at the server")]
    Cancelled,
    /// It failed, and its error cannot be read. One that can is the failure's source itself.
    #[error("the task failed, and its error cannot be read")]
    Failed,
    /// It is done, and what it gave cannot be read.
    #[error("the result of the task is no tool result")]
    Unreadable,
    /// The server could not be asked about it any more; this is what became of the last
    /// question.
    #[error("the server could not be asked about the task any more ({0})")]
    Lost(#[source] Failure),
}

/// The shortest time between two questions, whatever the server says.
const SHORTEST: Duration = Duration::from_millis(100);

/// The longest.
const LONGEST: Duration = Duration::from_secs(60);

/// The time between two where the server says nothing.
const USUAL: Duration = Duration::from_secs(1);

/// How long a question may take to be answered; it can be asked again.
const ANSWER: Duration = Duration::from_secs(10);

/// The same for the last, when the task's time is up.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// The longest pause after a question that was lost.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A task that is being followed.
#[derive(Debug)]
pub(crate) struct Followed {
    began: Instant,
    every: Duration,
    next: Instant,
    expires: Option<Instant>,
    /// How long the server may not be there to be asked.
    patience: Duration,
    /// Since when it is not.
    silent: Option<Instant>,
    lost: u32,
}

// === impl Followed ===

impl Followed {
    /// A task that began now, as far as we know.
    pub(crate) fn new(task: &Task, patience: Duration, now: Instant) -> Self {
        let mut followed = Self {
            began: now,
            every: USUAL,
            next: now,
            expires: None,
            patience,
            silent: None,
            lost: 0,
        };
        followed.heed(task, now);
        followed
    }

    /// When to ask next.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Whether the server is there: the silence until the next question is by its own word.
    pub(crate) const fn is_well(&self) -> bool {
        self.silent.is_none()
    }

    /// Whether the server need not know it any more.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// How long the answer to a question that is asked now may take.
    pub(crate) fn answer_limit(&self, now: Instant) -> Duration {
        if self.is_expired(now) {
            LAST_ANSWER
        } else {
            ANSWER.min(self.patience)
        }
    }

    /// The server told how it is.
    pub(crate) fn heed(&mut self, task: &Task, now: Instant) {
        let told = task.poll_interval_ms.map(Duration::from_millis);
        self.every = told.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
        // From its creation, which was a moment before we heard of it.
        self.expires = task
            .ttl_ms
            .and_then(|ttl| self.began.checked_add(Duration::from_millis(ttl)));
        (self.silent, self.lost) = (None, 0);
        self.plan(now + self.every, now);
    }

    /// A question that was asked at `asked` came to nothing. `false`: it is time to stop.
    pub(crate) fn lose(&mut self, failure: &Failure, asked: Instant, now: Instant) -> bool {
        let since = *self.silent.get_or_insert(asked);
        let factor = 2_u32.saturating_pow(self.lost.min(16));
        let pause = SHORTEST.saturating_mul(factor).min(LONGEST_PAUSE);
        self.lost += 1;
        let floor = failure.retry_floor().unwrap_or_default();
        // The server may name a time that no clock reaches.
        self.plan(after(now, pause.max(floor)), now);
        self.next.saturating_duration_since(since) <= self.patience
    }

    /// It is asked once more when its time is up, and not later.
    fn plan(&mut self, at: Instant, now: Instant) {
        let latest = self.expires.filter(|expires| *expires > now);
        self.next = latest.map_or(at, |latest| latest.min(at));
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::TaskStatus;
    use steadfast_classify::Class;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn task(every: Option<u64>, ttl: Option<u64>) -> Task {
        let mut task = Task::new("t", TaskStatus::Working, "", "");
        (task.poll_interval_ms, task.ttl_ms) = (every, ttl);
        task
    }

    #[test]
    fn the_servers_interval_is_kept_within_bounds() {
        for (every, want) in [
            (Some(500), 500),
            (Some(0), 100),
            (Some(600_000), 60_000),
            (None, 1_000),
        ] {
            let now = Instant::now();
            let followed = Followed::new(&task(every, None), MINUTE, now);
            assert_eq!(
                followed.next() - now,
                Duration::from_millis(want),
                "{every:?}"
            );
        }
    }

    #[test]
    fn a_task_is_asked_about_when_its_time_is_up_and_not_later() {
        let now = Instant::now();
        let mut followed = Followed::new(&task(Some(600_000), Some(2_000)), MINUTE, now);
        let end = now + Duration::from_secs(2);
        assert_eq!(followed.next(), end);
        assert!(!followed.is_expired(end - Duration::from_millis(1)));
        assert!(followed.is_expired(end));
        assert_eq!(followed.answer_limit(end), LAST_ANSWER);

        // It may get more time, counted from its beginning all the same.
        followed.heed(&task(Some(100), Some(3_000)), now + Duration::from_secs(1));
        assert!(!followed.is_expired(end));
        assert!(followed.is_expired(end + Duration::from_secs(1)));
    }

    #[test]
    fn lost_questions_are_asked_again_until_patience_ends() {
        let failure = Failure::new(Class::Unknown);
        let begun = Instant::now();
        let mut followed = Followed::new(&task(None, None), MINUTE, begun);
        let mut pauses = Vec::new();
        loop {
            let now = followed.next();
            if !followed.lose(&failure, now, now) {
                break;
            }
            pauses.push(followed.next().saturating_duration_since(now).as_millis());
        }
        assert_eq!(pauses[..7], [100, 200, 400, 800, 1600, 3200, 5000]);
        assert!(pauses.iter().sum::<u128>() <= MINUTE.as_millis());
        assert!(pauses.iter().sum::<u128>() > MINUTE.as_millis() - 5_000);

        let busy = failure.with_retry_after(Duration::from_secs(30));
        let mut followed = Followed::new(&task(None, None), MINUTE, begun);
        assert!(followed.lose(&busy, begun, begun));
        assert_eq!(followed.next() - begun, Duration::from_secs(30));
        assert!(!followed.lose(
            &busy,
            followed.next(),
            followed.next() + Duration::from_secs(1)
        ));
    }

    #[test]
    fn server_that_wants_to_be_asked_never_again_is_not() {
        let never = Failure::new(Class::Overloaded).with_retry_after(Duration::MAX);
        let now = Instant::now();
        let mut followed = Followed::new(&task(None, None), MINUTE, now);

        assert!(!followed.lose(&never, now, now));
    }
}
