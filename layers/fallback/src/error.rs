//! Settings that cannot be.

use std::time::Duration;

/// A [`Settings`](crate::Settings) value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSettings {
    /// No answer would ever be young enough.
    #[error("max_stale must be longer than 0, is {0:?}; to keep nothing, use NoStore")]
    MaxStale(Duration),
    /// No store that has to wait for anything would ever answer.
    #[error("lookup_limit must be longer than 0, is {0:?}")]
    LookupLimit(Duration),
}

/// A [`Bounds`](crate::Bounds) value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBounds {
    /// Nothing could be kept.
    #[error("max_entries must be at least 1, is {0}; to keep nothing, use NoStore")]
    MaxEntries(u64),
    /// Nothing could be kept, or more than a memory store is made for.
    #[error("max_bytes must be at least max_entries ({max_entries}) and less than 4 GiB, is {0}", max_entries = .1)]
    MaxBytes(u64, u64),
}
