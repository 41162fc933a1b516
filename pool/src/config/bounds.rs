//! Ranges of whole numbers, and the words for them.

use std::time::Duration;

/// A range of whole numbers, both ends allowed.
pub(crate) struct Bounds {
    min: u64,
    max: u64,
    unit: &'static str,
}

/// Limits of a call. A week is far above any sane limit; what is above it is a mistake
/// of units, and would overflow a clock sooner or later.
pub(crate) const LIMIT: Bounds = Bounds::millis(1, 7 * 24 * 60 * 60 * 1000);

/// Start and discovery of a server.
pub(crate) const DISCOVERY: Bounds = Bounds::millis(100, 300_000);

pub(crate) const RETRIES: Bounds = Bounds::count(0, 100);

pub(crate) const IN_FLIGHT: Bounds = Bounds::count(1, 65_535);

// === impl Bounds ===

impl Bounds {
    const fn millis(min: u64, max: u64) -> Self {
        let unit = " of milliseconds";
        Self { min, max, unit }
    }

    const fn count(min: u64, max: u64) -> Self {
        let unit = "";
        Self { min, max, unit }
    }

    pub(crate) const fn hold(&self, value: u64) -> bool {
        self.min <= value && value <= self.max
    }

    pub(crate) fn hold_duration(&self, value: Duration) -> bool {
        Duration::from_millis(self.min) <= value && value <= Duration::from_millis(self.max)
    }

    pub(crate) fn allowed(&self) -> String {
        let Self { min, max, unit } = self;
        format!("a whole number{unit}, {min} to {max}")
    }
}
