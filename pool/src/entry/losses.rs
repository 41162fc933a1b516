//! When a lost connection may be tried again.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::time::after;

/// The pauses between attempts to get a lost connection back.
///
/// The first attempt after a healthy period is at once, the next ones wait the `delays`
/// in turn, and after the last the server counts as failed: then one attempt is let
/// through per `cooldown`. It is never given up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Respawn {
    /// The pauses after the second, third … loss in a row.
    pub delays: Arc<[Duration]>,
    /// The pause once all delays are used up.
    pub cooldown: Duration,
    /// How long a connection must have lived for its loss to count as the first again.
    pub healthy_after: Duration,
}

/// The longest pause that a server can ask for. What is more than that is a mistake, and
/// nobody would notice when it is mended.
const MAX_ASKED: Duration = Duration::from_secs(60 * 60);

/// The losses of one server in a row.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    rules: Respawn,
    count: usize,
    last: Option<Instant>,
    not_before: Option<Instant>,
}

// === impl Respawn ===

impl Respawn {
    /// These delays, then one attempt per `cooldown`; 60 s without a loss are healthy.
    #[must_use]
    pub fn new(delays: impl Into<Arc<[Duration]>>, cooldown: Duration) -> Self {
        Self {
            delays: delays.into(),
            cooldown,
            healthy_after: Duration::from_secs(60),
        }
    }

    /// Sets how long a connection must have lived for its loss to count as the first.
    #[must_use]
    pub const fn with_healthy_after(mut self, healthy_after: Duration) -> Self {
        self.healthy_after = healthy_after;
        self
    }

    /// For servers that are processes, and for WebSockets: 5 s, three times, then 30 s.
    #[must_use]
    pub fn local() -> Self {
        Self::new([Duration::from_secs(5); 3], Duration::from_secs(30))
    }

    /// For HTTP servers: 1, 2, 4, 8 and 16 s, then 30 s.
    #[must_use]
    pub fn remote() -> Self {
        let delays = [1, 2, 4, 8, 16].map(Duration::from_secs);
        Self::new(delays, Duration::from_secs(30))
    }
}

// === impl Losses ===

impl Losses {
    pub(crate) const fn new(rules: Respawn) -> Self {
        Self {
            rules,
            count: 0,
            last: None,
            not_before: None,
        }
    }

    /// Notes a failed attempt, or the loss of a connection that lived since `alive_since`.
    /// `retry_after` is the server's own word.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        alive_since: Option<Instant>,
        retry_after: Option<Duration>,
    ) {
        let healthy = alive_since.is_some_and(|since| now - since >= self.rules.healthy_after);
        self.count = if healthy { 1 } else { self.count + 1 };
        let pause = match self.count {
            0 | 1 => Duration::ZERO,
            count => *self
                .rules
                .delays
                .get(count - 2)
                .unwrap_or(&self.rules.cooldown),
        };
        self.last = Some(now);
        let asked = retry_after.unwrap_or_default().min(MAX_ASKED);
        let pause = pause.max(asked);
        self.not_before = Some(after(now, pause));
    }

    /// How long the next attempt has to wait.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let wait = self.not_before?.saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    /// Whether the losses so far still count: forgetting them earlier would let a server
    /// that ends at once be started in a tight loop.
    pub(crate) fn remembers(&self, now: Instant) -> bool {
        let memory = self.rules.healthy_after.max(self.rules.cooldown);
        self.last.is_some_and(|last| now - last < memory)
    }

    /// Whether all delays are used up.
    pub(crate) fn is_failed(&self) -> bool {
        self.count > self.rules.delays.len() + 1
    }

    /// Somebody with the right to asked for an attempt now.
    pub(crate) const fn forgive(&mut self) {
        self.count = 0;
        self.last = None;
        self.not_before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(losses: &mut Losses, now: &mut Instant, times: usize) -> Vec<u64> {
        (0..times)
            .map(|_| {
                losses.note(*now, Some(*now), None);
                let wait = losses.wait(*now).unwrap_or_default();
                *now += wait;
                wait.as_secs()
            })
            .collect()
    }

    #[test]
    fn first_loss_is_retried_at_once_and_the_last_delay_is_followed_by_the_cooldown() {
        let mut now = Instant::now();
        for (rules, want) in [
            (Respawn::local(), vec![0, 5, 5, 5, 30, 30]),
            (Respawn::remote(), vec![0, 1, 2, 4, 8, 16, 30, 30]),
        ] {
            let mut losses = Losses::new(rules);
            assert_eq!(waits(&mut losses, &mut now, want.len()), want);
            assert!(losses.is_failed());
        }
    }

    #[test]
    fn only_a_healthy_period_resets_the_count() {
        let mut now = Instant::now();
        let mut losses = Losses::new(Respawn::local());
        waits(&mut losses, &mut now, 3);

        let alive_since = now;
        now += Duration::from_secs(59);
        losses.note(now, Some(alive_since), None);
        assert_eq!(losses.wait(now), Some(Duration::from_secs(5)));

        let alive_since = now;
        now += Duration::from_secs(60);
        losses.note(now, Some(alive_since), None);
        assert_eq!(losses.wait(now), None);
    }

    #[test]
    fn the_servers_own_word_is_a_floor() {
        let now = Instant::now();
        let mut losses = Losses::new(Respawn::local());
        losses.note(now, None, Some(Duration::from_secs(2)));
        assert_eq!(losses.wait(now), Some(Duration::from_secs(2)));
    }

    #[test]
    fn pause_that_is_never_over_ends_after_an_hour() {
        let now = Instant::now();
        let mut losses = Losses::new(Respawn::local());
        losses.note(now, None, Some(Duration::MAX));
        assert_eq!(losses.wait(now), Some(MAX_ASKED));
    }
}
