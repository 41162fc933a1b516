//! How long a circuit stays open.

use std::{fmt, sync::Arc, time::Duration};

use steadfast_classify::Class;

use crate::{InvalidSettings, time::MAX_SPAN};

/// How long a circuit stays open before it lets a probe through.
///
/// Set it from the time your server needs to recover: a shorter one only tests a server
/// that is still down, a longer one keeps callers away from one that is up again. The
/// presets never end before the time the server itself asked for
/// ([`retry_after`](steadfast_classify::Failure::retry_after)). No circuit stays open for
/// longer than 24 hours without a probe, whatever it is told.
///
/// ```
/// # use std::time::Duration;
/// # use steadfast_circuit_breaker::OpenFor;
/// # use steadfast_classify::Class;
/// let open_for = OpenFor::exponential();
/// assert_eq!(open_for.after(1, Class::Unknown, None), Duration::from_secs(30));
/// assert_eq!(open_for.after(3, Class::Unknown, None), Duration::from_secs(120));
/// assert_eq!(open_for.after(9, Class::Unknown, None), Duration::from_secs(300));
/// ```
#[derive(Clone)]
pub struct OpenFor(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(Duration),
    Exponential { min: Duration, max: Duration },
    With(Arc<dyn Fn(u32, Class, Option<Duration>) -> Duration + Send + Sync>),
}

// === impl OpenFor ===

impl OpenFor {
    /// Always the same.
    #[must_use]
    pub const fn fixed(open_for: Duration) -> Self {
        Self(Kind::Fixed(open_for))
    }

    /// 30 s, and twice as long each time the circuit opens again without having been
    /// healthy in between, up to 5 min.
    #[must_use]
    pub const fn exponential() -> Self {
        Self::exponential_between(Duration::from_secs(30), Duration::from_secs(300))
    }

    /// `min`, and twice as long each time the circuit opens again without having been
    /// healthy in between, up to `max`.
    #[must_use]
    pub const fn exponential_between(min: Duration, max: Duration) -> Self {
        Self(Kind::Exponential { min, max })
    }

    /// As `decide` says, given how often the circuit has opened since it was last healthy
    /// (this time included: from 1, up to 63), the class of the failure that opens it, and
    /// how long the server asked to be left alone.
    ///
    /// It should depend on nothing else and return at once: it runs inside the call that
    /// opens the circuit, and once more if another call is faster. A success that was too
    /// slow is given as [`Class::Timeout`].
    #[must_use]
    pub fn with<F>(decide: F) -> Self
    where
        F: Fn(u32, Class, Option<Duration>) -> Duration + Send + Sync + 'static,
    {
        Self(Kind::With(Arc::new(decide)))
    }

    /// How long a circuit stays open that opens for the `trips`-th time in a row, from 1.
    #[must_use]
    pub fn after(&self, trips: u32, class: Class, retry_after: Option<Duration>) -> Duration {
        let open_for = match &self.0 {
            Kind::With(decide) => decide(trips, class, retry_after),
            Kind::Fixed(open_for) => (*open_for).max(retry_after.unwrap_or_default()),
            Kind::Exponential { min, max } => {
                let factor = 2_u32.saturating_pow(trips.saturating_sub(1));
                let own = min.saturating_mul(factor).min(*max);
                own.max(retry_after.unwrap_or_default())
            }
        };
        open_for.min(MAX_SPAN)
    }

    pub(crate) fn check(&self) -> Result<(), InvalidSettings> {
        let (min, max) = match self.0 {
            Kind::Fixed(open_for) => (open_for, open_for),
            Kind::Exponential { min, max } => (min, max),
            Kind::With(_) => return Ok(()),
        };
        if min.is_zero() || min > max || max > MAX_SPAN {
            return Err(InvalidSettings::OpenFor { min, max });
        }
        Ok(())
    }
}

impl Default for OpenFor {
    /// 30 s each time: long enough for a server to start again, short enough that a user
    /// who waits for it tries once more.
    fn default() -> Self {
        Self::fixed(Duration::from_secs(30))
    }
}

impl fmt::Debug for OpenFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fixed(open_for) => write!(f, "Fixed({open_for:?})"),
            Kind::Exponential { min, max } => write!(f, "Exponential({min:?}..={max:?})"),
            Kind::With(_) => f.write_str("With(..)"),
        }
    }
}
