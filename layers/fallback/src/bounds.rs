//! How much a store in memory may keep.

use crate::InvalidBounds;

/// How much a [`Memory`](crate::Memory) may keep, checked when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    max_entries: u64,
    max_bytes: u64,
}

// === impl Bounds ===

impl Bounds {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            max_entries: 1024,
            max_bytes: 64 << 20,
        }
    }

    /// How many answers may be kept. Default: 1024, fifty questions to each of twenty
    /// servers.
    #[must_use]
    pub const fn with_max_entries(mut self, entries: u64) -> Self {
        self.max_entries = entries;
        self
    }

    /// How many bytes the answers may take, with their keys. Default: 64 MiB, 64 KiB for
    /// each of them, little next to what an agent holds anyway.
    #[must_use]
    pub const fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    pub(crate) const fn max_bytes(self) -> u64 {
        self.max_bytes
    }

    pub(crate) const fn check(self) -> Result<(), InvalidBounds> {
        if self.max_entries == 0 {
            return Err(InvalidBounds::MaxEntries(self.max_entries));
        }
        if self.max_bytes < self.max_entries || self.max_bytes > u32::MAX as u64 {
            return Err(InvalidBounds::MaxBytes(self.max_bytes, self.max_entries));
        }
        Ok(())
    }

    /// What an entry of so many bytes counts; `None` if it is larger than the store.
    ///
    /// Each counts at least its share of the bytes, so that one bound keeps both: so
    /// many shares fit, and no more.
    pub(crate) fn weight(self, bytes: usize) -> Option<u32> {
        let share = self.max_bytes.div_ceil(self.max_entries);
        let weight = u64::try_from(bytes).ok()?.max(share);
        (weight <= self.max_bytes).then(|| u32::try_from(weight).ok())?
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_at_least_its_share_and_never_more_than_the_store() {
        let bounds = Bounds::new().with_max_entries(10).with_max_bytes(1000);
        for (bytes, want) in [
            (0, Some(100)),
            (100, Some(100)),
            (101, Some(101)),
            (1000, Some(1000)),
            (1001, None),
            (usize::MAX, None),
        ] {
            assert_eq!(bounds.weight(bytes), want, "{bytes} bytes");
        }
    }

    #[test]
    fn a_bound_that_cannot_be_is_named() {
        let defaults = Bounds::new();
        for (bounds, want) in [
            (defaults, None),
            (defaults.with_max_entries(0), Some("max_entries")),
            (defaults.with_max_bytes(1023), Some("max_bytes")),
            (defaults.with_max_bytes(1024), None),
            (defaults.with_max_bytes(u32::MAX.into()), None),
            (defaults.with_max_bytes(1 << 32), Some("max_bytes")),
        ] {
            let error = bounds.check().err().map(|error| error.to_string());
            let named = error.as_ref().and_then(|text| text.split(' ').next());
            assert_eq!(named, want, "{bounds:?}");
        }
    }
}
