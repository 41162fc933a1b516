//! No bound on retries but their number.

use tower::retry::budget::Budget;

/// A budget that refuses nothing: retries are bounded per call only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBudget;

// === impl NoBudget ===

impl Budget for NoBudget {
    fn deposit(&self) {}

    fn withdraw(&self) -> bool {
        true
    }
}
