//! Waiting for as long as a knob says.

use std::time::Duration;

/// Waits for `ms` milliseconds; for 0 not even until the next turn of the timer, so that the
/// answers of a healthy server come in the order of their requests.
pub(crate) async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
