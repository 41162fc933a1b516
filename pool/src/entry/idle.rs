//! How long a connection that nobody holds may stay.

use std::time::Duration;

use tokio::time::Instant;

use crate::time::after;

/// Keeps the time of a connection without holders: a grace after each last detach, and an
/// allowance for all of them together.
///
/// The allowance shrinks only while nobody holds the connection. Attaching does not
/// refill it, so a client that comes and goes cannot keep an idle server for ever; holding
/// it for one grace period without a gap does, so a server that was in use keeps its
/// whole grace.
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    grace: Duration,
    max_idle: Duration,
    allowance: Duration,
    since: Since,
}

#[derive(Clone, Copy, Debug)]
enum Since {
    Held(Instant),
    Free(Instant),
}

// === impl Idle ===

impl Idle {
    /// A connection that somebody holds, or will in a moment, from `now` on.
    pub(crate) const fn new(grace: Duration, max_idle: Duration, now: Instant) -> Self {
        Self {
            grace,
            max_idle,
            allowance: max_idle,
            since: Since::Held(now),
        }
    }

    /// The first holder came.
    pub(crate) fn attach(&mut self, now: Instant) {
        if let Since::Free(since) = self.since {
            self.allowance = self.allowance.saturating_sub(now - since);
            self.since = Since::Held(now);
        }
    }

    /// The last holder went.
    pub(crate) fn detach(&mut self, now: Instant) {
        if let Since::Held(since) = self.since {
            if now - since >= self.grace {
                self.allowance = self.max_idle;
            }
            self.since = Since::Free(now);
        }
    }

    /// When it is to be closed; `None` while somebody holds it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.since {
            Since::Held(_) => None,
            Since::Free(since) => Some(after(since, self.grace.min(self.allowance))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const MAX: Duration = Duration::from_secs(300);

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[test]
    fn held_has_no_deadline() {
        let start = Instant::now();
        let mut idle = Idle::new(GRACE, MAX, start);
        assert_eq!(idle.deadline(), None);

        idle.detach(at(start, 10));
        assert_eq!(idle.deadline(), Some(at(start, 40)));

        idle.attach(at(start, 39));
        assert_eq!(idle.deadline(), None);
    }

    #[test]
    fn defect_h11_long_use_restores_the_whole_grace() {
        let start = Instant::now();
        let mut idle = Idle::new(GRACE, MAX, start);
        idle.detach(start);
        idle.attach(at(start, 29));
        // Used for long, then given up at a moment when the original's cap was all but over.
        idle.detach(at(start, 290));

        assert_eq!(idle.deadline(), Some(at(start, 320)));
    }

    #[test]
    fn race_c2_flapping_cannot_keep_it_longer_than_the_allowance() {
        let start = Instant::now();
        let mut idle = Idle::new(GRACE, MAX, start);
        let (mut now, mut free) = (start, 0);
        // Held for a second, free for 20, over and over: never free long enough for the grace.
        loop {
            idle.detach(now);
            let deadline = idle.deadline().expect("nobody holds it");
            if deadline <= at(now, 20) {
                free += (deadline - now).as_secs();
                break;
            }
            now = at(now, 20);
            free += 20;
            idle.attach(now);
            now = at(now, 1);
        }
        assert_eq!(free, 300);
    }

    #[test]
    fn holding_shorter_than_a_grace_refills_nothing() {
        let start = Instant::now();
        let mut idle = Idle::new(GRACE, MAX, start);
        idle.detach(start);
        idle.attach(at(start, 20));
        idle.detach(at(start, 49));
        idle.attach(at(start, 69));
        assert_eq!(idle.allowance, MAX - Duration::from_secs(40));

        idle.detach(at(start, 99));
        assert_eq!(idle.allowance, MAX, "held for exactly one grace period");
    }
}
