//! Server-sent events: bytes in, events out.

use std::time::Duration;

/// Reads a stream of events piece by piece, and never holds more than one event of the
/// allowed length.
#[derive(Debug)]
pub(super) struct Events {
    line: Vec<u8>,
    /// Whether the line has any bytes, be they dropped.
    in_line: bool,
    data: Vec<u8>,
    has_data: bool,
    kind: Vec<u8>,
    /// The id of the event that is being read. It counts once the event is complete: a
    /// stream that was cut within an event is to be resumed before it.
    id: Option<String>,
    max: usize,
    oversized: bool,
    /// Whether the last byte was a CR, whose LF is part of the same end of line.
    after_cr: bool,
    at_start: bool,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// What one piece of a stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A message, as JSON.
    Message(Vec<u8>),
    /// An event of another kind, or without data. Its id counts.
    Other,
    /// An event that was longer than allowed; its bytes are gone.
    Oversized,
}

/// The longest id of an event: it is sent in a header.
const MAX_ID: usize = 4096;

const BOM: &[u8] = b"\xef\xbb\xbf";

// === impl Events ===

impl Events {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            line: Vec::new(),
            in_line: false,
            data: Vec::new(),
            has_data: false,
            kind: Vec::new(),
            id: None,
            max,
            oversized: false,
            after_cr: false,
            at_start: true,
            last_id: None,
            retry: None,
        }
    }

    /// The id of the last event, if the stream can be resumed behind it.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// How long the server asked to wait before the stream is resumed.
    pub(super) const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// A new stream begins, which resumes the last one. Half an event of that is dropped.
    pub(super) fn restart(&mut self) {
        self.line.clear();
        self.in_line = false;
        self.id = None;
        self.end_event();
        self.after_cr = false;
        self.at_start = true;
    }

    /// Takes bytes up to the end of the next event; returns how many it took.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, Option<Event>) {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                taken += 1;
                continue;
            }
            let rest = &bytes[taken..];
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let part = &rest[..end.unwrap_or(rest.len())];
            self.extend_line(part);
            taken += part.len();
            let Some(end) = end else { break };
            self.after_cr = rest[end] == b'\r';
            taken += 1;
            if let Some(event) = self.end_line() {
                return (taken, Some(event));
            }
        }
        (taken, None)
    }

    fn extend_line(&mut self, part: &[u8]) {
        self.in_line |= !part.is_empty();
        if self.line.len() + self.data.len() + part.len() > self.max {
            self.oversized = true;
            self.line = Vec::new();
            self.data = Vec::new();
        }
        if !self.oversized {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mark = std::mem::take(&mut self.at_start) && line.starts_with(BOM);
        let line = if mark { &line[BOM.len()..] } else { &line };
        // The bytes of a line that is too long are gone, but it had some.
        let blank = !std::mem::take(&mut self.in_line) || mark && line.is_empty();
        if blank {
            return self.dispatch();
        }
        if !self.oversized {
            self.field(line);
        }
        None
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = value.to_vec(),
            // One that no header can hold names nothing that the stream could go on behind.
            b"id" if value.len() <= MAX_ID && !value.iter().any(u8::is_ascii_control) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let text = std::str::from_utf8(value).ok();
                let millis = text.and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // A comment, or a field that nobody knows.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        let oversized = self.oversized;
        let is_message = self.kind.is_empty() || self.kind == b"message";
        let has_data = self.has_data;
        let data = std::mem::take(&mut self.data);
        self.last_id = self.id.take().or(self.last_id.take());
        self.end_event();
        if oversized {
            return Some(Event::Oversized);
        }
        Some(match (has_data && is_message, data.is_empty()) {
            (true, false) => Event::Message(data),
            _ => Event::Other,
        })
    }

    fn end_event(&mut self) {
        self.data.clear();
        self.has_data = false;
        self.kind.clear();
        self.oversized = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\n\nid: 1\nretry: 70\ndata: {\"a\":\ndata: 1}\n\n\
                          event: endpoint\ndata: /x\n\nid: 2\r\ndata:x\r\n\r\nevent: message\rdata: y\r\r\
                          id: 3\ndata\n\nid: 4\ndata: cut";

    /// Everything in a stream that comes in pieces of these lengths, in turn.
    fn read(stream: &str, pieces: &[usize], max: usize) -> (Vec<Event>, Events) {
        let mut events = Events::new(max);
        let (mut all, mut rest) = (Vec::new(), stream.as_bytes());
        let mut lengths = pieces.iter().cycle();
        while !rest.is_empty() {
            let length = *lengths.next().expect("a cycle");
            let (mut piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            while !piece.is_empty() {
                let (taken, event) = events.take(piece);
                piece = &piece[taken..];
                all.extend(event);
            }
        }
        (all, events)
    }

    fn message(text: &str) -> Event {
        Event::Message(text.into())
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        for pieces in [&[1][..], &[2], &[3, 1], &[7, 2, 5], &[1000]] {
            let (all, events) = read(STREAM, pieces, 1000);
            let want = [
                Event::Other,
                message("{\"a\":\n1}"),
                Event::Other,
                message("x"),
                message("y"),
                Event::Other,
            ];
            assert_eq!(all, want, "{pieces:?}");
            // The last event was cut, so the stream goes on before it.
            assert_eq!(events.last_id(), Some("3"), "{pieces:?}");
            assert_eq!(events.retry(), Some(Duration::from_millis(70)));
        }
    }

    #[test]
    fn event_that_is_too_long_is_dropped_whole_and_the_next_is_read() {
        for stream in [
            "data: 0123456789\ndata: more\n\ndata: ok\n\n",
            "data: 01234\ndata: 56789\ndata: more\n\ndata: ok\n\n",
        ] {
            for pieces in [&[1][..], &[5], &[1000]] {
                let (all, _) = read(stream, pieces, 15);
                assert_eq!(
                    all,
                    [Event::Oversized, message("ok")],
                    "{stream:?} {pieces:?}"
                );
            }
        }
    }

    #[test]
    fn half_an_event_is_forgotten_when_the_stream_is_resumed() {
        let (_, mut events) = read("id: 1\ndata: a\n\nid: 2\ndata: ha", &[1000], 1000);
        events.restart();

        let (_, event) = events.take(b"data: b\n\n");

        assert_eq!(event, Some(message("b")));
        assert_eq!(events.last_id(), Some("1"));
    }

    #[test]
    fn id_can_be_taken_back_and_what_is_no_number_is_no_pause() {
        let (_, events) = read("id: 1\ndata: a\n\nid\nretry: soon\ndata: b\n\n", &[1], 1000);
        assert_eq!((events.last_id(), events.retry()), (None, None));
    }

    #[test]
    fn id_that_fits_in_no_header_is_none() {
        let long = "x".repeat(MAX_ID + 1);
        for id in ["\u{1}", "a\u{7f}", "a\0b", long.as_str()] {
            let (_, events) = read(
                &format!("id: 1\ndata: a\n\nid: {id}\ndata: b\n\n"),
                &[9],
                1 << 20,
            );
            assert_eq!(events.last_id(), Some("1"), "{id:?}");
        }
    }
}
