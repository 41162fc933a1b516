//! Where good answers are kept.

use std::{
    fmt,
    future::{Future, Ready, ready},
    marker::PhantomData,
    time::Duration,
};

use crate::Key;

/// Where good answers are kept: [`Memory`](crate::Memory), or a store that several
/// machines share.
///
/// A store promises one thing: [`lookup`](Self::lookup) gives only what was
/// [`put`](Self::put) under an equal key and the same generation. How old an answer may
/// be is not its business. Nothing here may block.
pub trait Store {
    /// The kind of answer it keeps.
    type Value;

    /// A lookup under way. It is dropped when it takes too long.
    type Lookup: Future<Output = Option<Kept<Self::Value>>>;

    /// The present generation of this server. It only grows. See
    /// [`Generations`](crate::Generations) for a way to count them.
    ///
    /// A shared store that outlives a process must not count from 0 again: it mirrors
    /// the shared count, which other machines raise too.
    fn generation(&self, server: &str) -> u64;

    /// Makes stale what was put for this server so far.
    fn raise(&self, server: &str);

    /// Takes a good answer, that of a call which began in this generation. It replaces
    /// an earlier one under the same key, unless that is of a later generation. The
    /// caller waits for nothing: a slow store hands it over to a task of its own.
    fn put(&self, key: Key, generation: u64, value: &Self::Value);

    /// Looks for the last answer under this key and generation.
    fn lookup(&self, key: Key, generation: u64) -> Self::Lookup;
}

/// An answer that was kept, and how long ago it was given.
///
/// The age is what the store can vouch for: one that several machines share has to make
/// it from clocks that need not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept<T> {
    /// The answer.
    pub value: T,
    /// How long ago the server gave it.
    pub age: Duration,
}

/// A store that keeps nothing, for a chain that begins with the caller's default.
pub struct NoStore<T>(PhantomData<fn() -> T>);

// === impl Kept ===

impl<T> Kept<T> {
    /// An answer of this age.
    #[must_use]
    pub const fn new(value: T, age: Duration) -> Self {
        Self { value, age }
    }
}

// === impl NoStore ===

impl<T> NoStore<T> {
    /// A store that keeps nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Store for NoStore<T> {
    type Value = T;
    type Lookup = Ready<Option<Kept<T>>>;

    fn generation(&self, _server: &str) -> u64 {
        0
    }

    fn raise(&self, _server: &str) {}

    fn put(&self, _key: Key, _generation: u64, _value: &T) {}

    fn lookup(&self, _key: Key, _generation: u64) -> Self::Lookup {
        ready(None)
    }
}

impl<T> Clone for NoStore<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<T> Default for NoStore<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for NoStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoStore")
    }
}
