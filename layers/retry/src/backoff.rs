//! How long to wait before the next attempt.

use std::time::Duration;

use crate::InvalidBackoff;

/// How long to wait before each retry: exponentially longer, up to a cap, and never the
/// same for two callers.
///
/// With jitter `j`, the wait before retry `n` (from 0) is
///
/// ```text
/// Additive(j):  b + U(0, j·b)   where b = min(base · factorⁿ, cap / (1 + j))
/// Full:         U(0, b)         where b = min(base · factorⁿ, cap)
/// ```
///
/// so it is never above the cap *and* still spread when it has reached the cap: jitter
/// added on top of a capped wait would exceed it, and a capped sum would bring all
/// callers back at the same moment.
///
/// Default: base 0.5 s (a restarted process is back after about that), factor 2, cap 8 s
/// (what a person waits), jitter `Additive(0.2)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    factor: f64,
    jitter: Jitter,
}

/// How waits are spread, so that callers that failed together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// Up to this part of the wait, from 0 (none) to 1, is added to it. The wait stays
    /// near what the formula says.
    Additive(f64),
    /// Anything from nothing to the whole wait. Spreads most, and may retry at once.
    Full,
}

/// No wait is longer than this, so that no arithmetic on waits can overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

// === impl Backoff ===

impl Backoff {
    /// A backoff that doubles from `base` up to `cap`.
    ///
    /// # Errors
    ///
    /// If `base` is zero, `cap` is below `base` or above 24 h, or an additive jitter is
    /// not from 0 to 1.
    pub fn new(base: Duration, cap: Duration, jitter: Jitter) -> Result<Self, InvalidBackoff> {
        if base.is_zero() {
            return Err(InvalidBackoff::Base);
        }
        if cap < base || cap > LONGEST {
            return Err(InvalidBackoff::Cap { base, cap });
        }
        match jitter {
            // A NaN is in no range.
            Jitter::Additive(ratio) if !(0.0..=1.0).contains(&ratio) => {
                Err(InvalidBackoff::Jitter(ratio))
            }
            Jitter::Additive(_) | Jitter::Full => Ok(Self {
                base,
                cap,
                factor: 2.0,
                jitter,
            }),
        }
    }

    /// Multiplies each wait by `factor` instead of 2; 1 keeps it constant.
    ///
    /// # Errors
    ///
    /// If `factor` is below 1 or not finite.
    pub fn with_factor(mut self, factor: f64) -> Result<Self, InvalidBackoff> {
        if !factor.is_finite() || factor < 1.0 {
            return Err(InvalidBackoff::Factor(factor));
        }
        self.factor = factor;
        Ok(self)
    }

    /// The longest wait.
    #[must_use]
    pub const fn cap(&self) -> Duration {
        self.cap
    }

    /// The wait before retry `retry`, counted from 0. `random` is uniform in `[0, 1)`;
    /// what lies outside is taken as the nearer end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use steadfast_retry::Backoff;
    /// let backoff = Backoff::default();
    /// assert_eq!(backoff.delay(2, 0.0), Duration::from_secs(2));
    /// assert_eq!(backoff.delay(2, 0.5), Duration::from_millis(2_200));
    /// assert_eq!(backoff.delay(u32::MAX, 1.0), Duration::from_secs(8));
    /// ```
    #[must_use]
    pub fn delay(&self, retry: u32, random: f64) -> Duration {
        let (fixed, spread) = self.parts(retry, random);
        fixed + spread
    }

    /// The part of the wait that is the same for everyone, and this caller's share of the
    /// spread.
    pub(crate) fn parts(&self, retry: u32, random: f64) -> (Duration, Duration) {
        let random = if random.is_nan() {
            0.0
        } else {
            random.clamp(0.0, 1.0)
        };
        match self.jitter {
            Jitter::Additive(ratio) => {
                let fixed = self.grown(retry, self.cap.div_f64(1.0 + ratio));
                let spread = fixed.mul_f64(ratio * random);
                // Both were rounded; their sum may be a nanosecond too long.
                (fixed, spread.min(self.cap - fixed))
            }
            Jitter::Full => {
                let spread = self.grown(retry, self.cap).mul_f64(random);
                (Duration::ZERO, spread)
            }
        }
    }

    /// `min(base · factorⁿ, ceiling)`, without overflow for any `n`.
    fn grown(&self, retry: u32, ceiling: Duration) -> Duration {
        let growth = self.factor.powi(i32::try_from(retry).unwrap_or(i32::MAX));
        // Compared before it is multiplied: beyond the ceiling it may be infinite.
        if growth < ceiling.div_duration_f64(self.base) {
            self.base.mul_f64(growth)
        } else {
            ceiling
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            factor: 2.0,
            jitter: Jitter::default(),
        }
    }
}

// === impl Jitter ===

impl Default for Jitter {
    /// `Additive(0.2)`.
    fn default() -> Self {
        Self::Additive(0.2)
    }
}
