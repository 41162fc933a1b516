//! Silence that is not the server's.

use std::fmt;

use crate::Flight;

/// Keeps the read limit of an attempt from running, until it is dropped.
///
/// Made by [`Flight::hold`] where the next word is ours and not the server's: somebody
/// answers a question of the server's, or it told when to ask again. Its end counts as a
/// sign of life, so that the read limit begins anew. Limits on the attempt and on the whole
/// call are not held.
#[must_use = "the read limit runs again once it is dropped"]
pub struct Hold(Flight);

// === impl Hold ===

impl Hold {
    pub(crate) fn new(flight: Flight) -> Self {
        flight.add_hold();
        Self(flight)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // First, so that nobody finds it unheld and silent for as long as it was held.
        self.0.progress();
        self.0.remove_hold();
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.0).finish()
    }
}
