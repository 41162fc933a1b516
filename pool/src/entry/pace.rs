//! How soon a list is asked for again that is said to have changed. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// How long news of changed lists are collected at least: they come in bursts.
const BURST: Duration = Duration::from_millis(100);

/// How long they are collected at most.
const LONGEST: Duration = Duration::from_secs(30);

/// News that come within this of the last list are taken for a consequence of it.
const QUIET: Duration = Duration::from_secs(1);

/// Slows down for a server that says that its list has changed whenever it is asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    collect: Duration,
    listed: Option<Instant>,
}

// === impl Pace ===

impl Pace {
    pub(super) const fn new() -> Self {
        Self {
            collect: BURST,
            listed: None,
        }
    }

    /// How long to collect news, now that some came: twice as long as the last time, unless
    /// the server was quiet for a while after its last list.
    pub(super) fn heard(&mut self, now: Instant) -> Duration {
        let quiet = |listed| now.saturating_duration_since(listed) >= QUIET;
        self.collect = if self.listed.is_none_or(quiet) {
            BURST
        } else {
            self.collect.saturating_mul(2).min(LONGEST)
        };
        self.collect
    }

    /// A list came.
    pub(super) const fn listed(&mut self, now: Instant) {
        self.listed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_always_has_news_is_asked_ever_more_seldom() {
        let mut pace = Pace::new();
        let mut now = Instant::now();

        let waits = [(); 11].map(|()| {
            let wait = pace.heard(now);
            now += wait;
            pace.listed(now);
            wait.as_millis()
        });

        let want = [
            100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000,
        ];
        assert_eq!(waits, want);
        let quiet = now + QUIET;
        assert_eq!(pace.heard(quiet - Duration::from_nanos(1)), LONGEST);
        assert_eq!(pace.heard(quiet), BURST, "it was quiet");
    }
}
