use std::{
    collections::VecDeque,
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::task::{AbortHandle, yield_now};

use super::sys::StderrPipe;

const CHUNK: usize = 8 * 1024;

/// Reads per turn: more than a pipe can hold, so that one turn empties it, and still an end.
const CHUNKS: usize = 160;

/// The last of what a server wrote to its stderr, to be quoted in errors. Cheap to clone; it stays
/// readable after the server has ended.
///
/// The pipe is emptied all the time, whatever the server writes, so that it never blocks on it. Of
/// that only the last bytes are kept, up to the limit given to [`spawn`](super::spawn).
#[derive(Clone)]
pub struct StderrTail(Arc<Mutex<State>>);

struct State {
    ring: Ring,
    pipe: Option<Arc<StderrPipe>>,
    task: Option<AbortHandle>,
}

/// The last `limit` bytes of a stream.
#[derive(Debug)]
struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
    /// Something was thrown away, so the first line may be half a line.
    cut: bool,
}

// === impl StderrTail ===

impl StderrTail {
    pub(super) fn new(limit: usize) -> Self {
        let ring = Ring::new(limit);
        Self(Arc::new(Mutex::new(State {
            ring,
            pipe: None,
            task: None,
        })))
    }

    /// Starts to empty `pipe` on the current runtime.
    pub(super) fn drain(&self, pipe: StderrPipe) {
        let pipe = Arc::new(pipe);
        self.state().pipe = Some(Arc::clone(&pipe));
        let task = tokio::spawn(self.clone().run(pipe));
        self.state().task = Some(task.abort_handle());
    }

    /// The last whole lines, what is no UTF-8 replaced and control characters removed. Takes in
    /// first what lies in the pipe, so that the last words of a dead server are in it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut state = self.state();
        state.pump(StderrPipe::read_now);
        state.ring.text()
    }

    /// Takes in what lies in the pipe and closes it, whoever else still holds the other end.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.pump(StderrPipe::read_now);
        state.pipe = None;
        if let Some(task) = state.task.take() {
            task.abort();
        }
    }

    async fn run(self, pipe: Arc<StderrPipe>) {
        while pipe.readable().await.is_ok() {
            if !self.state().pump(StderrPipe::try_read) {
                return;
            }
            // A server that never stops writing must not keep the thread to itself.
            yield_now().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Bytes in a ring are whole after a panic as before it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrTail")
            .field("bytes", &self.state().ring.bytes.len())
            .finish()
    }
}

// === impl State ===

impl State {
    /// Moves what can be read at once into the ring. `false` once there is nothing more to come.
    fn pump(&mut self, read: fn(&StderrPipe, &mut [u8]) -> io::Result<usize>) -> bool {
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let mut chunk = [0; CHUNK];
        for _ in 0..CHUNKS {
            match read(pipe, &mut chunk) {
                Ok(0) => {
                    self.pipe = None;
                    return false;
                }
                Ok(n) => self.ring.push(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.pipe = None;
                    return false;
                }
            }
        }
        true
    }
}

// === impl Ring ===

impl Ring {
    fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            cut: false,
        }
    }

    fn push(&mut self, new: &[u8]) {
        let kept = &new[new.len().saturating_sub(self.limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.cut |= excess > 0 || kept.len() < new.len();
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let whole = match text.split_once('\n') {
            Some((_half, rest)) if self.cut && !rest.trim().is_empty() => rest,
            _ => &text,
        };
        let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        whole.trim().chars().filter(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(limit: usize, pieces: &[&[u8]]) -> Ring {
        let mut ring = Ring::new(limit);
        for piece in pieces {
            ring.push(piece);
        }
        ring
    }

    #[test]
    fn keeps_the_last_whole_lines() {
        for (limit, pieces, want) in [
            (8, &[&b"one\n"[..], b"two\n"][..], "one\ntwo"),
            (8, &[b"one\n", b"two\n", b"3\n"], "two\n3"),
            (8, &[b"0123456789"], "23456789"),
            (8, &[b"0123456789\n"], "3456789"),
            (8, &[b"01234567\nabc\n"], "abc"),
            (0, &[b"01234567\nabc\n"], ""),
            (8, &[], ""),
        ] {
            assert_eq!(ring(limit, pieces).text(), want, "{limit} {pieces:?}");
        }
    }

    #[test]
    fn never_holds_more_than_its_limit() {
        let mut ring = Ring::new(100);

        for _ in 0..1000 {
            ring.push(&[b'x'; 777]);
            assert!(ring.bytes.len() <= 100 && ring.bytes.capacity() <= 256);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_removed() {
        let ring = ring(100, &[b"\x1b[31mred\x07\r\n\xff\ttab\n"]);

        assert_eq!(ring.text(), "[31mred\n\u{fffd}\ttab");
    }
}
