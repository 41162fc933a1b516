use std::time::Duration;

/// How long a server may take to end by itself before the next, harder step.
///
/// The steps are cut short as soon as nothing of the server is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grace {
    /// From the end of its input to `SIGTERM`. Default 2 s: a server may have to flush.
    pub eof: Duration,
    /// From `SIGTERM` to `SIGKILL`. Default 2 s. Windows has no such signal: there it only waits.
    pub term: Duration,
    /// How long to wait for proof of death after `SIGKILL`, 100 ms at least. Default 1 s; a process
    /// that survives it hangs in the kernel (a dead network drive) and is reported.
    pub kill: Duration,
}

// === impl Grace ===

impl Grace {
    /// Gives each step its limit.
    #[must_use]
    pub const fn new(eof: Duration, term: Duration, kill: Duration) -> Self {
        Self { eof, term, kill }
    }

    /// The same steps, shortened in proportion so that together they take no longer than `limit`.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        let total = self.eof.saturating_add(self.term).saturating_add(self.kill);
        if total <= limit {
            return self;
        }
        // `total` is above `limit`, so it is not zero and the factor is below 1.
        let factor = limit.as_secs_f64() / total.as_secs_f64();
        Self {
            eof: self.eof.mul_f64(factor),
            term: self.term.mul_f64(factor),
            kill: self.kill.mul_f64(factor),
        }
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::new(
            Duration::from_secs(2),
            Duration::from_secs(2),
            Duration::from_secs(1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_shortens_every_step_and_never_lengthens() {
        let grace = Grace::default();

        assert_eq!(grace.within(Duration::from_secs(5)), grace);
        assert_eq!(grace.within(Duration::MAX), grace);
        let half = grace.within(Duration::from_millis(2500));
        assert_eq!(half.eof, Duration::from_secs(1));
        assert_eq!(half.term, Duration::from_secs(1));
        assert_eq!(half.kill, Duration::from_millis(500));
        let none = Grace::new(Duration::MAX, Duration::MAX, Duration::MAX).within(Duration::ZERO);
        assert_eq!(
            none,
            Grace::new(Duration::ZERO, Duration::ZERO, Duration::ZERO)
        );
    }
}
