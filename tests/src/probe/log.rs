//! A file of JSON lines that several processes append to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The writing side.
#[derive(Debug)]
pub(crate) struct Appender {
    file: File,
}

/// The reading side of a file of JSON lines.
#[derive(Clone, Debug)]
pub struct Log<T> {
    path: PathBuf,
    line: PhantomData<fn() -> T>,
}

// === impl Appender ===

impl Appender {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file })
    }

    /// Appends one line in one write, so that lines of several processes never mix.
    pub(crate) fn append(&self, line: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        (&self.file).write_all(&bytes)
    }

    /// Returns once the line is on disk: what was executed stays counted after any kill.
    pub(crate) fn append_synced(&self, line: &impl Serialize) -> io::Result<()> {
        self.append(line)?;
        self.file.sync_data()
    }
}

// === impl Log ===

impl<T: DeserializeOwned> Log<T> {
    /// A log that is read from `path`; the file need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            line: PhantomData,
        }
    }

    /// All whole lines, in the order they were written; a missing file is empty, and a last line
    /// without its end (the writer was killed) is left out.
    ///
    /// # Errors
    /// When the file cannot be read, or ([`InvalidData`](io::ErrorKind::InvalidData)) a whole line
    /// is not what it should be.
    pub fn entries(&self) -> io::Result<Vec<T>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        bytes[..whole]
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).map_err(|error| self.broken(&error)))
            .collect()
    }

    fn broken(&self, error: &serde_json::Error) -> io::Error {
        let text = format!("a wrong line in {}: {error}", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    /// Reads again and again until `found` likes the lines, and returns them.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut) after `within`; otherwise as
    /// [`entries`](Self::entries).
    pub async fn wait_for(
        &self,
        within: Duration,
        found: impl Fn(&[T]) -> bool,
    ) -> io::Result<Vec<T>> {
        let poll = async {
            loop {
                let entries = self.entries()?;
                if found(&entries) {
                    return Ok(entries);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(within, poll).await {
            Ok(entries) => entries,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("nothing of that kind in {} in time", self.path.display()),
            )),
        }
    }
}
