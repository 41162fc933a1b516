//! Whether a failed attempt is followed by another.

use std::time::Duration;

use steadfast_classify::{Class, Effect, Failure, Phase};

use crate::Settings;

/// A failed attempt, and what bounds the call it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempted<'a> {
    /// `None` for an error that nobody classified.
    pub(crate) failure: Option<&'a Failure>,
    /// Whether the service was called. If not, it failed to become ready.
    pub(crate) called: bool,
    pub(crate) effect: Effect,
    /// Which attempt it was, from 1.
    pub(crate) attempt: u32,
    pub(crate) max_retries: u32,
    /// Until the deadline of the call, if it has one.
    pub(crate) remaining: Option<Duration>,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Wait so long, then try again.
    Retry(Duration),
    /// It could be repeated, but something bounds that.
    Stop(Reason),
    /// It must not be repeated, repeating cannot help, or retries are off.
    Final,
}

/// What bounds a call that could be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    CircuitOpen,
    Exhausted,
    MaxWait,
    Deadline,
    Budget,
}

/// Decides. Only a retry asks for `random`, which is uniform in `[0, 1)`.
pub(crate) fn judge(
    seen: &Attempted<'_>,
    settings: &Settings,
    random: impl FnOnce() -> f64,
) -> Verdict {
    if seen.max_retries == 0 {
        return Verdict::Final;
    }
    if seen.failure.is_some_and(Failure::is_circuit_open) {
        return Verdict::Stop(Reason::CircuitOpen);
    }
    if !seen.may_repeat() {
        return Verdict::Final;
    }
    if seen.attempt > seen.max_retries {
        return Verdict::Stop(Reason::Exhausted);
    }
    let floor = seen.failure.and_then(Failure::retry_floor);
    let (fixed, spread) = settings
        .backoff
        .parts(seen.attempt.saturating_sub(1), random());
    // The spread goes on top of a floor too: whoever was told the same time would
    // otherwise come back at the same moment.
    let least = fixed.max(floor.unwrap_or_default());
    if least > settings.max_wait {
        return Verdict::Stop(Reason::MaxWait);
    }
    let wait = least.saturating_add(spread).min(settings.max_wait);
    // An attempt that begins at the deadline is over before it began.
    if seen.remaining.is_some_and(|remaining| wait >= remaining) {
        return Verdict::Stop(Reason::Deadline);
    }
    Verdict::Retry(wait)
}

// === impl Attempted ===

impl Attempted<'_> {
    /// What happened. An error that nobody classified says nothing; but what was never
    /// called was not sent, whatever its error would mean in the middle of a call.
    pub(crate) fn class(&self) -> Class {
        match self.failure.map_or(Class::Unknown, Failure::class) {
            Class::Unknown | Class::Timeout if !self.called => Class::NotSent,
            class => class,
        }
    }

    /// Whether this attempt may have run.
    pub(crate) fn may_have_run(&self) -> bool {
        self.called && self.failure.is_none_or(Failure::may_have_run)
    }

    /// Whether it was turned away unread, with the session it came in.
    pub(crate) fn lost_its_session(&self) -> bool {
        let phase = self.failure.and_then(Failure::phase);
        self.class() == Class::NotSent && phase == Some(Phase::Session)
    }

    /// Class × effect. What may have run before its last attempt, inside a service that
    /// repeats calls itself, is not repeated by its last class alone.
    fn may_repeat(&self) -> bool {
        let permanent = self.failure.is_some_and(Failure::is_permanent);
        let harmless = self.effect.is_repeatable() || !self.may_have_run();
        !permanent && harmless && self.class().may_repeat(self.effect)
    }
}

// === impl Reason ===

impl Reason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::CircuitOpen => "circuit_open",
            Self::Exhausted => "exhausted",
            Self::MaxWait => "max_wait",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backoff, Jitter};

    const READ: Effect = Effect::ReadOnly;

    fn attempted(failure: &Failure) -> Attempted<'_> {
        Attempted {
            failure: Some(failure),
            called: true,
            effect: READ,
            attempt: 1,
            max_retries: 3,
            remaining: None,
        }
    }

    fn never() -> f64 {
        panic!("drew a random number for no retry")
    }

    #[test]
    fn only_what_may_be_repeated_draws_a_random_number() {
        let settings = Settings::new();
        let unknown = Failure::new(Class::Unknown);
        let answered = Failure::new(Class::Answered);
        let mut opened = Failure::new(Class::NotSent);
        opened.mark_circuit_open(None);
        let exhausted = Attempted {
            attempt: 4,
            ..attempted(&unknown)
        };
        let off = Attempted {
            max_retries: 0,
            ..attempted(&unknown)
        };
        for (seen, want) in [
            (attempted(&answered), Verdict::Final),
            (off, Verdict::Final),
            (attempted(&opened), Verdict::Stop(Reason::CircuitOpen)),
            (exhausted, Verdict::Stop(Reason::Exhausted)),
        ] {
            assert_eq!(judge(&seen, &settings, never), want, "{seen:?}");
        }
    }

    #[test]
    fn a_floor_takes_the_place_of_the_fixed_part_of_the_wait_only() {
        let ms = Duration::from_millis;
        // The first wait is 500 ms and up to 100 ms more.
        for (after, random, want) in [
            (0, 0.0, 500),
            (0, 0.5, 550),
            (499, 0.5, 550),
            (1_000, 0.0, 1_000),
            (1_000, 0.5, 1_050),
            (9_999, 1.0, 10_000),
            (10_000, 1.0, 10_000),
        ] {
            let failure = Failure::new(Class::Overloaded).with_retry_after(ms(after));
            let verdict = judge(&attempted(&failure), &Settings::new(), || random);
            assert_eq!(verdict, Verdict::Retry(ms(want)), "{after} {random}");
        }
    }

    #[test]
    fn full_jitter_is_spread_on_top_of_a_floor() {
        let ms = Duration::from_millis;
        let backoff = Backoff::new(ms(500), ms(8_000), Jitter::Full).unwrap();
        let settings = Settings::new().with_backoff(backoff);
        for (after, random, want) in [(0, 0.5, 250), (100, 0.5, 350), (1_000, 0.5, 1_250)] {
            let failure = Failure::new(Class::Overloaded).with_retry_after(ms(after));
            let verdict = judge(&attempted(&failure), &settings, || random);
            assert_eq!(verdict, Verdict::Retry(ms(want)), "{after} {random}");
        }
    }

    #[test]
    fn the_largest_numbers_are_judged_like_any_other() {
        let failure = Failure::new(Class::Unknown).with_retry_after(Duration::MAX);
        let settings = Settings::new().with_max_wait(Duration::MAX);
        let seen = Attempted {
            attempt: u32::MAX,
            max_retries: u32::MAX,
            ..attempted(&failure)
        };

        let verdict = judge(&seen, &settings, || 1.0);

        assert_eq!(verdict, Verdict::Retry(Duration::MAX));
    }
}
