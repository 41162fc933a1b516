//! Faults of the byte stream.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

/// What goes wrong with bytes, whatever they say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WireKnobs {
    /// Lines on stdout before anything else.
    pub junk_first: Vec<String>,
    /// A line on stdout before each message.
    pub junk_between: Option<String>,
    /// A line on stdout for each message received.
    pub junk_echo: Option<String>,
    /// A line of two bytes that are no UTF-8 (`ff fe`) before each message.
    pub bad_line: bool,
    /// A byte order mark before the first message.
    pub bom: bool,
    /// End lines with CR LF.
    pub crlf: bool,
    /// Write so many bytes at a time.
    pub piece: Option<NonZeroUsize>,
    /// Wait so long after each piece.
    pub piece_gap_ms: u64,
    /// Collect so many answers and send them in one write.
    pub batch: Option<NonZeroUsize>,
    /// Send what was collected after so long, even if it is less; 0: 100 ms.
    pub batch_wait_ms: u64,
    /// A line of so many bytes after each collected answer but the last, in the same write.
    pub batch_junk_bytes: usize,
    /// Send collected answers in random order.
    pub shuffle: bool,
    /// Lines of 1 KiB on stderr before each answer, so many bytes in all.
    pub stderr_bytes: u64,
    /// Close stdout after so many messages were written, and live on.
    pub close_stdout_after: Option<u64>,
    /// Read no further than so many messages, with stdin open.
    pub stop_reading_after: Option<u64>,
    /// Close stdin after so many messages were read, and live on.
    pub close_stdin_after: Option<u64>,
}
