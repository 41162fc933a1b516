//! Lines: one JSON message each.

/// Cuts a stream of bytes into lines, without ever holding more than one line of the
/// allowed length.
#[derive(Debug)]
pub(crate) struct Framing {
    line: Vec<u8>,
    max_line: usize,
    skipping: bool,
}

/// What a piece of the stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Complete(Vec<u8>),
    /// A line that was longer than allowed; its bytes are gone.
    Oversized,
}

/// A buffer larger than this is not kept for the next line.
const KEEP: usize = 64 * 1024;

// === impl Framing ===

impl Framing {
    pub(crate) const fn new(max_line: usize) -> Self {
        Self {
            line: Vec::new(),
            max_line,
            skipping: false,
        }
    }

    /// Takes the next bytes of the stream up to the first end of a line; returns how many
    /// it took, and the line if one is complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Line>) {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if self.line.len() + part.len() > self.max_line {
            self.line = Vec::new();
            self.skipping = true;
        } else if !self.skipping {
            self.line.extend_from_slice(part);
        }
        match end {
            Some(end) => (end + 1, Some(self.complete())),
            None => (bytes.len(), None),
        }
    }

    /// What is left when the stream ends without an end of line.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        (self.skipping || !self.line.is_empty()).then(|| self.complete())
    }

    fn complete(&mut self) -> Line {
        if std::mem::take(&mut self.skipping) {
            return Line::Oversized;
        }
        let room = self.line.len().min(KEEP);
        Line::Complete(std::mem::replace(&mut self.line, Vec::with_capacity(room)))
    }
}
