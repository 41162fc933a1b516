//! Counters that outlive a process.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::log::{Appender, Log};

/// Makes each mark of this process unlike the others, also when several servers share it.
static NEXT_MARK: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(crate) struct State {
    file: Option<(Appender, Log<Mark>)>,
    memory: Mutex<HashMap<String, u64>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Mark {
    key: String,
    pid: u32,
    number: u64,
}

// === impl State ===

impl State {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = match path {
            Some(path) => Some((Appender::open(path)?, Log::new(path))),
            None => None,
        };
        Ok(Self {
            file,
            memory: Mutex::default(),
        })
    }

    /// Counts `key` and returns how often it had been counted before.
    pub(crate) fn count(&self, key: &str) -> io::Result<u64> {
        let Some((appender, log)) = &self.file else {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            let count = memory.entry(key.to_owned()).or_default();
            *count += 1;
            return Ok(*count - 1);
        };
        let own = Mark {
            key: key.to_owned(),
            pid: std::process::id(),
            number: NEXT_MARK.fetch_add(1, Ordering::Relaxed),
        };
        // Append first, then look for the own line: its place in the file decides, so that two
        // processes never get the same number.
        appender.append(&own)?;
        let marks = log.entries()?;
        let earlier = marks.iter().take_while(|mark| **mark != own);
        Ok(earlier.filter(|mark| mark.key == key).count() as u64)
    }
}
