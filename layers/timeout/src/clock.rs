//! When an attempt is over. Pure: it is told what time it is.

use std::time::Duration;

use steadfast_classify::{CallContext, Flight, Phase, Stage};
use tokio::time::Instant;

use crate::{Elapsed, Settings};

/// The timers of tokio are no finer than this, so looking more often is of no use.
const TICK: Duration = Duration::from_millis(1);

/// The limits of one attempt, and when it was called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    called: Instant,
    connect: Duration,
    read: Duration,
    /// When the attempt ends however far it came, and by whose limit.
    last: Option<(Instant, Phase)>,
    reset_on_progress: bool,
}

/// How far an attempt came, as far as its limits are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View {
    /// The inner service is not ready yet.
    Waiting,
    /// The inner service was called at `at`, and no wire has claimed the attempt:
    /// it may have been sent as early as that.
    Called { at: Instant, tracked: bool },
    /// A wire has claimed it, and had not sent it.
    Queued { start_limit: Duration },
    /// Sent; the read limit runs from `since`.
    Sent { since: Instant },
    /// Sent, and the silence is not the server's.
    Held,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again then; `None`: no limit can run out.
    Wait(Option<Instant>),
    /// A limit ran out.
    Over(Elapsed),
}

// === impl Clock ===

impl Clock {
    pub(crate) fn new(settings: &Settings, context: Option<&CallContext>, called: Instant) -> Self {
        let limits = context.and_then(CallContext::limits);
        let attempt = limits.and_then(|l| l.attempt).or(settings.attempt);
        let deadline = context.and_then(CallContext::deadline);
        Self {
            called,
            connect: limits.and_then(|l| l.connect).unwrap_or(settings.connect),
            read: limits.and_then(|l| l.read).unwrap_or(settings.read),
            // That the whole call is over says more than that this attempt is.
            last: earlier(
                deadline.map(|end| (end, Phase::Total)),
                attempt.and_then(|limit| end(called, Phase::Attempt, limit)),
            ),
            reset_on_progress: settings.reset_on_progress,
        }
    }

    pub(crate) const fn called(&self) -> Instant {
        self.called
    }

    /// The end of the whole call, if it had passed when the attempt was called.
    pub(crate) fn missed(&self) -> Option<Elapsed> {
        match self.last {
            Some((end, Phase::Total)) if end <= self.called => {
                Some(Elapsed::new(Phase::Total, Duration::ZERO))
            }
            _ => None,
        }
    }

    /// How far the attempt came: `begun` is when the inner service was called.
    pub(crate) fn view(&self, begun: Option<Instant>, flight: Option<&Flight>) -> View {
        let Some(at) = begun else {
            return View::Waiting;
        };
        // Where the request was cloned, the flight tells of the first attempt only.
        let Some(flight) = flight.filter(|flight| flight.is_sole()) else {
            return View::Called { at, tracked: false };
        };
        // First: the end of a hold leaves a mark, and that is then read.
        let held = flight.is_held();
        match flight.stage() {
            (Stage::Queued | Stage::Withdrawn, _) => View::Queued {
                start_limit: flight.start_limit().unwrap_or_default(),
            },
            (Stage::Sent | Stage::Answered, last) if self.reset_on_progress => {
                if held {
                    View::Held
                } else {
                    View::Sent { since: last }
                }
            }
            (Stage::Sent | Stage::Answered, last) => View::Sent {
                since: flight.sent_at().unwrap_or(last),
            },
            _ => View::Called { at, tracked: true },
        }
    }

    /// Whether the attempt is over, or when to look again.
    ///
    /// Nobody wakes the attempt when it is sent, so the next look is never later than
    /// the read limit of a request that is sent right after this one.
    pub(crate) fn check(&self, now: Instant, view: View) -> Verdict {
        let own = self.limit(view);
        // Its own limit says most about what went wrong.
        let first = earlier(
            own.and_then(|(since, phase, limit)| end(since, phase, limit)),
            self.last,
        );
        match first {
            None => Verdict::Wait(self.next_look(now, view)),
            Some((end, whose)) if end <= now => Verdict::Over(match own {
                Some((_, phase, limit)) if whose == phase => Elapsed::new(phase, limit),
                _ => Elapsed::new(whose, end.saturating_duration_since(self.called)),
            }),
            Some((end, _)) => {
                let look = self.next_look(now, view);
                Verdict::Wait(Some(look.map_or(end, |look| look.min(end))))
            }
        }
    }

    /// The limit of the phase it is in, and since when it runs, if it does.
    fn limit(&self, view: View) -> Option<(Instant, Phase, Duration)> {
        Some(match view {
            View::Waiting => (self.called, Phase::Connect, self.connect),
            View::Queued { start_limit } => {
                (self.called, Phase::Connect, self.connect.max(start_limit))
            }
            View::Called { at, .. } => (at, Phase::Read, self.read),
            View::Sent { since } => (since, Phase::Read, self.read),
            View::Held => return None,
        })
    }

    /// When an earlier limit than that of this view may begin to count, at the earliest.
    fn next_look(&self, now: Instant, view: View) -> Option<Instant> {
        match view {
            // Nor does anybody wake it when it is set free.
            View::Waiting | View::Queued { .. } | View::Held => {
                now.checked_add(self.read.max(TICK))
            }
            // A wire may claim it late, and then the connect limit counts.
            View::Called { tracked: true, .. } => {
                self.called.checked_add(self.connect).filter(|at| *at > now)
            }
            View::Called { tracked: false, .. } | View::Sent { .. } => None,
        }
    }
}

/// When this limit runs out; what is too far away to be said never comes.
fn end(since: Instant, phase: Phase, limit: Duration) -> Option<(Instant, Phase)> {
    since.checked_add(limit).map(|end| (end, phase))
}

/// The earlier of two ends, the first of equals.
fn earlier(
    first: Option<(Instant, Phase)>,
    second: Option<(Instant, Phase)>,
) -> Option<(Instant, Phase)> {
    match (first, second) {
        (Some((first, _)), Some((other, _))) if other < first => second,
        (None, _) => second,
        (Some(_), _) => first,
    }
}

#[cfg(test)]
mod tests;
