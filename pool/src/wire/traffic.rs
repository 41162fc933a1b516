//! What a wire counts.

/// Counters of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Requests that have no answer yet.
    pub(crate) pending: usize,
    /// Answers that nobody waited for any more, or ever had.
    pub(crate) late_answers: u64,
    /// Progress for a token that no running call has.
    pub(crate) stray_progress: u64,
    /// Lines that were no message.
    pub(crate) junk: u64,
    /// Lines longer than allowed.
    pub(crate) oversized: u64,
}
