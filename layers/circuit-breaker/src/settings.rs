//! What a circuit breaker is told when it is built.

use std::time::Duration;

use crate::{
    InvalidSettings, OpenFor,
    bits::{MAX_FAILURES, MAX_PROBES},
    time::MAX_SPAN,
};

/// When a circuit opens, for how long, and what closes it again.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_circuit_breaker::{OpenFor, Settings};
/// let settings = Settings::new()
///     .with_consecutive_failures(3)
///     .with_failure_rate(0.5)
///     .with_open_for(OpenFor::exponential());
/// assert_eq!(settings.probe_lease, Duration::from_secs(90));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// So many failures in a row open the circuit, 1 to 1023; `None`: only a rate does.
    /// Default 5: a server that fails five times running is down, and an agent that calls
    /// a few tools a minute would wait long for a rate to mean anything.
    pub consecutive_failures: Option<u32>,
    /// This share of the calls in the window, above 0 and up to 1, opens the circuit too
    /// when it fails. Looked at whenever a call fails. Default: off, for the reason above.
    pub failure_rate: Option<f64>,
    /// This share of the calls in the window, above 0 and up to 1, opens the circuit too
    /// when it takes [`slow_call`](Self::slow_call) or longer; and a probe as slow as that
    /// fails. Looked at whenever a call is slow. Default: off, since tools may be slow by
    /// nature.
    pub slow_call_rate: Option<f64>,
    /// From when on a call is slow. Default 30 s, half of what a call is usually given.
    pub slow_call: Duration,
    /// How far back rates look, 10 ms to 24 h. It moves on in ten steps, so that it covers
    /// between nine and ten tenths of this. Default 60 s, two open times.
    pub window: Duration,
    /// Rates mean nothing for fewer calls in the window than this, at least 1. Default 10.
    pub minimum_calls: u32,
    /// How long the circuit stays open. Default 30 s each time.
    pub open_for: OpenFor,
    /// So many successful probes, 1 to 63, close the circuit; they are let through one
    /// after the other, and one that fails opens it again. Default 1: a server that
    /// answered is alive.
    pub probes: u32,
    /// How long the next probe waits for one that does not come back, up to 24 h, kept in
    /// steps of 64 ms. A late result of the first still counts. Default 90 s, above the 65 s
    /// that connecting and reading may take.
    pub probe_lease: Duration,
    /// Closed for this long, up to 24 h and up to 2.5 s late, a circuit has forgotten how
    /// often it opened, and [`open_for`](Self::open_for) counts from 1 again. Not at the
    /// first success: a server that answers once and fails again has not recovered.
    /// Default 60 s.
    pub healthy_after: Duration,
    /// Whether an error that the server answered with counts as a failure. Default
    /// `false`: a server that says "no such order" is alive, and wrong arguments of one
    /// caller must not close it to all.
    pub count_answered: bool,
    /// Whether the breaker only watches: everything is counted and told, and nobody is
    /// turned away. Default `false`.
    pub observe_only: bool,
    /// How many circuits a keyed breaker keeps, at least 1. Default 1024.
    pub max_keys: usize,
}

// === impl Settings ===

impl Settings {
    /// The defaults, as documented on each field.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            consecutive_failures: Some(5),
            failure_rate: None,
            slow_call_rate: None,
            slow_call: Duration::from_secs(30),
            window: Duration::from_secs(60),
            minimum_calls: 10,
            open_for: OpenFor::fixed(Duration::from_secs(30)),
            probes: 1,
            probe_lease: Duration::from_secs(90),
            healthy_after: Duration::from_secs(60),
            count_answered: false,
            observe_only: false,
            max_keys: 1024,
        }
    }

    /// Sets how many failures in a row open the circuit.
    #[must_use]
    pub fn with_consecutive_failures(mut self, failures: impl Into<Option<u32>>) -> Self {
        self.consecutive_failures = failures.into();
        self
    }

    /// Sets the share of failed calls that opens the circuit.
    #[must_use]
    pub const fn with_failure_rate(mut self, rate: f64) -> Self {
        self.failure_rate = Some(rate);
        self
    }

    /// Sets the share of slow calls that opens the circuit, and from when on a call is
    /// slow.
    #[must_use]
    pub const fn with_slow_call_rate(mut self, rate: f64, slow_call: Duration) -> Self {
        self.slow_call_rate = Some(rate);
        self.slow_call = slow_call;
        self
    }

    /// Sets how far back rates look, and for how many calls they mean something.
    #[must_use]
    pub const fn with_window(mut self, window: Duration, minimum_calls: u32) -> Self {
        self.window = window;
        self.minimum_calls = minimum_calls;
        self
    }

    /// Sets how long the circuit stays open.
    #[must_use]
    pub fn with_open_for(mut self, open_for: OpenFor) -> Self {
        self.open_for = open_for;
        self
    }

    /// Sets how many successful probes close the circuit.
    #[must_use]
    pub const fn with_probes(mut self, probes: u32) -> Self {
        self.probes = probes;
        self
    }

    /// Sets how long the next probe waits for one that does not come back.
    #[must_use]
    pub const fn with_probe_lease(mut self, lease: Duration) -> Self {
        self.probe_lease = lease;
        self
    }

    /// Sets after what time closed the circuit forgets how often it opened.
    #[must_use]
    pub const fn with_healthy_after(mut self, healthy_after: Duration) -> Self {
        self.healthy_after = healthy_after;
        self
    }

    /// Sets whether an error that the server answered with counts as a failure.
    #[must_use]
    pub const fn with_count_answered(mut self, count: bool) -> Self {
        self.count_answered = count;
        self
    }

    /// Sets whether the breaker only watches.
    #[must_use]
    pub const fn with_observe_only(mut self, observe_only: bool) -> Self {
        self.observe_only = observe_only;
        self
    }

    /// Sets how many circuits a keyed breaker keeps.
    #[must_use]
    pub const fn with_max_keys(mut self, max_keys: usize) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// Whether each call has to be timed and put into the window.
    pub(crate) const fn has_rates(&self) -> bool {
        self.failure_rate.is_some() || self.slow_call_rate.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), InvalidSettings> {
        match self.consecutive_failures {
            None if !self.has_rates() => return Err(InvalidSettings::NoRule),
            Some(failures) if failures == 0 || failures > MAX_FAILURES => {
                return Err(InvalidSettings::ConsecutiveFailures(failures));
            }
            None | Some(_) => {}
        }
        let is_rate = |rate: f64| rate > 0.0 && rate <= 1.0;
        if let Some(rate) = self.failure_rate.filter(|rate| !is_rate(*rate)) {
            return Err(InvalidSettings::FailureRate(rate));
        }
        if let Some(rate) = self.slow_call_rate.filter(|rate| !is_rate(*rate)) {
            return Err(InvalidSettings::SlowCallRate(rate));
        }
        if self.window < Duration::from_millis(10) || self.window > MAX_SPAN {
            return Err(InvalidSettings::Window(self.window));
        }
        if self.minimum_calls == 0 {
            return Err(InvalidSettings::MinimumCalls);
        }
        if self.probes == 0 || self.probes > MAX_PROBES {
            return Err(InvalidSettings::Probes(self.probes));
        }
        if self.probe_lease.is_zero() || self.probe_lease > MAX_SPAN {
            return Err(InvalidSettings::ProbeLease(self.probe_lease));
        }
        if self.healthy_after > MAX_SPAN {
            return Err(InvalidSettings::HealthyAfter(self.healthy_after));
        }
        if self.max_keys == 0 {
            return Err(InvalidSettings::MaxKeys);
        }
        self.open_for.check()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}
