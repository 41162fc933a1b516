//! Why a call was turned away, and why settings were.

use std::{fmt, time::Duration};

use steadfast_classify::{Class, Failure};

use crate::{
    OpenCause, State,
    state::{Label, Transition},
};

/// A call was turned away because the circuit of its server is not closed.
///
/// It is the source of the [`Failure`], of class [`Class::Rejected`], that the call gets:
///
/// ```
/// # use steadfast_circuit_breaker::CircuitOpen;
/// # use steadfast_classify::Failure;
/// fn who(failure: &Failure) -> Option<&str> {
///     Some(failure.find_source::<CircuitOpen>()?.name())
/// }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
pub struct CircuitOpen {
    label: Label,
    state: State,
    cause: OpenCause,
    class: Option<Class>,
    retry_in: Option<Duration>,
}

/// The settings make no sense; says which one, and what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSettings {
    /// Nothing would ever open the circuit.
    #[error("one of consecutive_failures, failure_rate and slow_call_rate must be set")]
    NoRule,
    /// Outside of what is counted.
    #[error("consecutive_failures must be 1 to {MAX}, not {0}", MAX = crate::bits::MAX_FAILURES)]
    ConsecutiveFailures(u32),
    /// No share of anything.
    #[error("failure_rate must be above 0 and at most 1, not {0}")]
    FailureRate(f64),
    /// No share of anything.
    #[error("slow_call_rate must be above 0 and at most 1, not {0}")]
    SlowCallRate(f64),
    /// Too short to be cut in ten, or too long.
    #[error("window must be 10ms to 24h, not {0:?}")]
    Window(Duration),
    /// A rate of no calls.
    #[error("minimum_calls must be at least 1")]
    MinimumCalls,
    /// Zero, decreasing, or too long.
    #[error("open_for must be above zero, not decreasing and at most 24h, not {min:?} to {max:?}")]
    OpenFor {
        /// The first open time.
        min: Duration,
        /// The longest open time.
        max: Duration,
    },
    /// Outside of what is counted.
    #[error("probes must be 1 to {MAX}, not {0}", MAX = crate::bits::MAX_PROBES)]
    Probes(u32),
    /// No lease, or too long a one.
    #[error("probe_lease must be above zero and at most 24h, not {0:?}")]
    ProbeLease(Duration),
    /// Too long.
    #[error("healthy_after must be at most 24h, not {0:?}")]
    HealthyAfter(Duration),
    /// Room for nothing.
    #[error("max_keys must be at least 1")]
    MaxKeys,
}

// === impl CircuitOpen ===

impl CircuitOpen {
    pub(crate) fn new(label: &Label, told: &Transition, retry_in: Option<Duration>) -> Self {
        Self {
            label: label.clone(),
            state: told.to,
            // What is told of a circuit that is not closed always has one.
            cause: told.cause.unwrap_or(OpenCause::Isolated),
            class: told.class,
            retry_in,
        }
    }

    /// The name of the breaker.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.label.name
    }

    /// Which of a keyed breaker's circuits it was, as the key's `Debug` prints it.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.label.key.as_deref()
    }

    /// The state the circuit was in: open, half open with its probe out, or isolated.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why it is not closed.
    #[must_use]
    pub const fn cause(&self) -> OpenCause {
        self.cause
    }

    /// The class of the failure it opened by, if one did.
    #[must_use]
    pub const fn class(&self) -> Option<Class> {
        self.class
    }

    /// When a call is let through at the latest: when the open time is over, or the lease
    /// of the probe that is out; `None` for an isolated circuit.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        self.retry_in
    }

    pub(crate) fn into_failure(self) -> Failure {
        // A probe that is out mostly ends long before its lease: nobody should be told to stay
        // away for that long.
        let retry_in = self.retry_in.filter(|_| self.state != State::HalfOpen);
        let mut failure = Failure::new(Class::Rejected)
            .with_layer("circuit breaker")
            .with_source(self);
        failure.mark_circuit_open(retry_in);
        failure
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit {} is ", self.label)?;
        f.write_str(match self.state {
            State::HalfOpen => "half open, and its probe is out",
            state => state.as_str(),
        })?;
        if self.cause != OpenCause::Isolated {
            write!(f, ": {}", self.cause)?;
        }
        match self.class {
            Some(class) => write!(f, " ({class})"),
            None => Ok(()),
        }
    }
}
