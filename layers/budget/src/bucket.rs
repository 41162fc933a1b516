//! One bucket, and the place of a call that waits for it.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::Waker,
};

use governor::state::InMemoryState;

use crate::line::Line;

/// What governor counts, and the line of those who wait for it. Kept by a
/// [`Meter`](crate::meter::Meter).
#[derive(Default)]
pub(crate) struct Bucket {
    pub(crate) state: InMemoryState,
    /// The length of the line, so that a call that need not wait takes no lock.
    waiting: AtomicUsize,
    line: Mutex<Line>,
}

/// The place in a line that a waiting call keeps. Dropping it leaves the line.
#[derive(Debug, Default)]
pub struct Place(Option<(Arc<Bucket>, u64)>);

// === impl Bucket ===

impl Bucket {
    pub(crate) fn has_line(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Changes the line, and wakes whom that concerns.
    pub(crate) fn with_line<T>(&self, change: impl FnOnce(&mut Line) -> T) -> T {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut line);
        self.waiting.store(line.waiting(), Ordering::Release);
        let wakes = line.take_wakes();
        drop(line);
        // Not under the lock: what is woken may leave the line at once.
        wakes.into_iter().for_each(Waker::wake);
        result
    }
}

/// A bucket is only itself, however much it holds.
impl PartialEq for Bucket {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Bucket {}

impl Hash for Bucket {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        ptr::from_ref(self).hash(hasher);
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.load(Ordering::Relaxed);
        f.debug_struct("Bucket")
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

// === impl Place ===

impl Place {
    /// Keeps the place of this number in the line of `bucket`.
    pub(crate) fn keep(&mut self, bucket: Arc<Bucket>, number: u64) {
        *self = Self(Some((bucket, number)));
    }

    /// The bucket that is waited for, and the number in its line.
    pub(crate) const fn get(&self) -> Option<&(Arc<Bucket>, u64)> {
        self.0.as_ref()
    }

    /// Forgets the place, of which the line knows nothing any more.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((bucket, number)) = self.0.take() {
            // The waker is dropped out here, not under the lock.
            let _waker = bucket.with_line(|line| line.leave(number));
        }
    }
}
