//! What the end of a call does to its circuit.

use std::time::Duration;

use steadfast_classify::{Class, Classified, Failure};
use tokio::time::Instant;

use crate::{
    OpenCause, State,
    bits::{View, Weight},
    judge::{Verdict, is_worth_marking, judge},
    pass::Pass,
    shared::{Shared, Why, lock, state_of},
};

/// A failure, as far as the circuit cares.
#[derive(Clone, Copy)]
struct Blow {
    class: Class,
    retry_after: Option<Duration>,
    /// Whether it counts in a row.
    in_row: bool,
    /// The rate that it exceeds.
    exceeded: Option<OpenCause>,
}

// === impl Shared ===

impl Shared {
    /// When to begin timing a call: at once only where each call is timed.
    #[inline]
    pub(crate) fn start(&self) -> Option<Instant> {
        self.window.is_some().then(Instant::now)
    }

    /// A call succeeded: mostly one load, and no more.
    #[inline]
    pub(crate) fn succeeded(&self, pass: Pass, started: Option<Instant>) {
        if self.window.is_some() {
            self.succeeded_in_time(pass, started);
        } else if !self.word.load().is_at_rest() {
            self.succeed(pass);
        }
    }

    fn succeeded_in_time(&self, pass: Pass, started: Option<Instant>) {
        let now = Instant::now();
        self.alive(pass, now, ran(started, now));
    }

    /// A call failed; tells the error if the circuit is open now.
    pub(crate) fn failed<E: Classified>(
        &self,
        pass: Pass,
        started: Option<Instant>,
        error: &mut E,
    ) {
        let now = Instant::now();
        let failure = error.failure();
        let told = failure.and_then(Failure::elapsed).unwrap_or_default();
        let ran = ran(started, now).max(told);
        let verdict = judge(failure, ran, self.settings.count_answered);
        let mut blow = Blow {
            class: failure.map_or(Class::Unknown, Failure::class),
            retry_after: failure.and_then(Failure::retry_after),
            in_row: verdict == Verdict::Failure,
            exceeded: None,
        };
        match verdict {
            Verdict::Success => return self.alive(pass, now, ran),
            Verdict::Neutral => self.release(pass),
            Verdict::Busy => self.fail(pass, now, blow),
            Verdict::Failure => {
                blow.exceeded = self.record(pass, now, true, ran);
                self.fail(pass, now, blow);
            }
        }
        if let Some(retry_in) = self.shut(now) {
            let failure = error.failure_mut().filter(|it| is_worth_marking(it));
            if let Some(failure) = failure {
                failure.mark_circuit_open(retry_in);
            }
        }
    }

    /// The place of a probe is free again.
    pub(crate) fn release(&self, pass: Pass) {
        self.word.apply(
            |bits| bits.release(pass),
            |from, to| self.word.swap(from, to),
        );
    }

    /// The server is alive, if not fast.
    fn alive(&self, pass: Pass, now: Instant, ran: Duration) {
        let Some(cause) = self.record(pass, now, false, ran) else {
            return self.succeed(pass);
        };
        let blow = Blow {
            class: Class::Timeout,
            retry_after: None,
            in_row: false,
            exceeded: Some(cause),
        };
        self.fail(pass, now, blow);
    }

    fn succeed(&self, pass: Pass) {
        self.word.apply(
            |bits| bits.succeed(pass, self.settings.probes, || self.time(Instant::now())),
            |from, to| self.turn(from, to, Instant::now(), Some(Why::CLOSED)),
        );
    }

    fn fail(&self, pass: Pass, now: Instant, blow: Blow) {
        let settings = &*self.settings;
        let weight = Weight {
            threshold: settings.consecutive_failures.filter(|_| blow.in_row),
            exceeded: blow.exceeded.is_some(),
            healthy_after: settings.healthy_after,
        };
        let open_for = |trips: u32| settings.open_for.after(trips, blow.class, blow.retry_after);
        self.word.apply(
            |bits| bits.fail(pass, weight, self.time(now), open_for),
            |from, to| {
                let cause = match from.view() {
                    View::HalfOpen { .. } => OpenCause::ProbeFailed,
                    _ => blow.exceeded.unwrap_or(OpenCause::ConsecutiveFailures),
                };
                self.turn(from, to, now, Some(Why::opened(cause, blow.class)))
            },
        );
    }

    /// Puts a call into the window, where there is one; says which rate it exceeds.
    fn record(&self, pass: Pass, now: Instant, failed: bool, ran: Duration) -> Option<OpenCause> {
        let window = self.window.as_ref()?;
        let settings = &*self.settings;
        let slow = settings.slow_call_rate.is_some() && ran >= settings.slow_call;
        if pass.is_probe() {
            return slow.then_some(OpenCause::ProbeFailed);
        }
        let counts = lock(window).record(pass, self.time(now), failed, slow)?;
        let exceeds = |some: u64, rate: Option<f64>| {
            rate.is_some_and(|rate| some as f64 / counts.calls as f64 >= rate)
        };
        if counts.calls < u64::from(settings.minimum_calls) {
            None
        } else if failed && exceeds(counts.failures, settings.failure_rate) {
            Some(OpenCause::FailureRate)
        } else if slow && exceeds(counts.slow, settings.slow_call_rate) {
            Some(OpenCause::SlowCallRate)
        } else {
            None
        }
    }

    /// Whether another call would be turned away now, and until when.
    fn shut(&self, now: Instant) -> Option<Option<Duration>> {
        let bits = self.word.load();
        let state = state_of(bits);
        if self.only_observes(state) {
            return None;
        }
        match state {
            State::Open => bits.shut_for(self.time(now)).map(Some),
            State::Isolated => Some(None),
            State::Closed | State::HalfOpen => None,
        }
    }
}

fn ran(started: Option<Instant>, now: Instant) -> Duration {
    started.map_or(Duration::ZERO, |started| {
        now.saturating_duration_since(started)
    })
}
