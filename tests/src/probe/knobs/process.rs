//! Faults of the process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::WireKnobs;

/// How long a probe that may outlive its host stays, so that a failed test leaves nothing behind.
const LIFE: Duration = Duration::from_secs(300);

/// How the process ends, and what it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessKnobs {
    /// Live on at the end of stdin.
    pub ignore_eof: bool,
    /// Live on at SIGTERM.
    pub ignore_sigterm: bool,
    /// File to which `bye` is appended at the end of stdin and `term` at SIGTERM, before exiting.
    pub goodbye: Option<PathBuf>,
    /// Wait so long between the end of stdin and exiting.
    pub eof_delay_ms: u64,
    /// Exit once so many calls were answered.
    pub exit_after_calls: Option<u64>,
    /// The code of that exit.
    pub exit_code: i32,
    /// While this file exists the server is down: it exits with status 1 when it is initialized,
    /// and instead of executing a call.
    pub outage: Option<PathBuf>,
    /// Start a process that lives on by itself and holds stdout and stderr.
    pub helper: Option<HelperKnobs>,
    /// End after so long in any case; 0: after 5 minutes if a knob lets the server outlive its
    /// host, else never.
    pub life_ms: u64,
}

/// The process that a probe starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HelperKnobs {
    /// Live on at SIGTERM.
    pub ignore_sigterm: bool,
    /// Leave the process group and session of the server.
    pub setsid: bool,
    /// Close stdout and stderr instead of holding them.
    pub quiet: bool,
    /// End after so long; 0: 5 minutes.
    pub life_ms: u64,
}

// === impl ProcessKnobs ===

impl ProcessKnobs {
    pub(crate) fn is_down(&self) -> bool {
        self.outage.as_deref().is_some_and(Path::exists)
    }

    pub(crate) fn life(&self, wire: &WireKnobs) -> Option<Duration> {
        let stubborn = self.ignore_eof
            || wire.stop_reading_after.is_some()
            || wire.close_stdin_after.is_some();
        match self.life_ms {
            0 => stubborn.then_some(LIFE),
            limit => Some(Duration::from_millis(limit)),
        }
    }
}

// === impl HelperKnobs ===

impl HelperKnobs {
    pub(crate) fn life(&self) -> Duration {
        match self.life_ms {
            0 => LIFE,
            limit => Duration::from_millis(limit),
        }
    }
}
