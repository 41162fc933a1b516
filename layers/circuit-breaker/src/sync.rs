//! The atomic the word is made of, so that a model checker can put its own in its place.

#[cfg(steadfast_loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(steadfast_loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
