use std::{collections::HashSet, io};

use tracing::warn;

use super::{
    sys::{self, Leader, Sent, Signal},
    table::{Family, Identity, ProcessTable},
};

/// A bound on what one server may make us signal one by one, in case the proof is ever wrong.
const MAX_SIGNALLED: usize = 256;

/// What became of the descendants that had left the server's process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Why the process table could not be read, or why a signal was refused.
    pub error: Option<String>,
    /// How many were found. `None` if the table could not be read: unknown is not zero.
    pub found: Option<usize>,
    /// How many of them were signalled, or had ended before it came to that.
    pub signalled: usize,
}

/// The search for one server's descendants, over all the looks that its end takes.
#[derive(Debug, Default)]
pub(super) struct Hunt {
    found: HashSet<Identity>,
    signalled: HashSet<Identity>,
    blind: bool,
    error: Option<String>,
}

// === impl SweepReport ===

impl SweepReport {
    /// Whether the table was read and nothing that was found was left alone.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.error.is_none() && self.found.is_some_and(|found| found <= self.signalled)
    }
}

// === impl Hunt ===

impl Hunt {
    /// Learns from one look at the process table, and says what is alive now.
    pub(super) fn look(&mut self, leader: Identity, table: io::Result<ProcessTable>) -> Family {
        let table = match table {
            Ok(table) => table,
            Err(error) => {
                self.blind = true;
                self.error = Some(format!("cannot read the process table: {error}"));
                return Family::default();
            }
        };
        // Once found, a process stays ours although its parent died and its mark was wiped.
        let known: Vec<_> = self.found.iter().copied().collect();
        let family = table.family(leader, &known, std::process::id());
        self.found
            .extend(family.escaped.iter().chain(&family.beyond));
        family
    }

    /// Signals the group, and each of `family` that left it.
    pub(super) fn signal(&mut self, leader: &Leader, family: &Family, signal: Signal) {
        if let Err(error) = leader.signal_group(signal) {
            self.error = Some(format!("cannot signal the process group: {error}"));
        }
        for id in &family.escaped {
            if self.signalled.len() >= MAX_SIGNALLED && !self.signalled.contains(id) {
                continue;
            }
            match sys::signal(*id, signal) {
                Ok(Sent::Delivered | Sent::Gone) => {
                    self.signalled.insert(*id);
                }
                Err(error) => {
                    self.error = Some(format!("cannot signal process {}: {error}", id.pid));
                }
            }
        }
    }

    /// Ends the search. What was found but is gone without a signal needed none.
    pub(super) fn report(&self, leader: u32, left: &Family) -> SweepReport {
        let alive: HashSet<_> = left.iter().collect();
        let handled = |id: &&Identity| self.signalled.contains(*id) || !alive.contains(*id);
        let report = SweepReport {
            error: self.error.clone(),
            found: (!self.blind).then_some(self.found.len()),
            signalled: self.found.iter().filter(handled).count(),
        };
        if !report.is_complete() {
            let found = report
                .found
                .map_or_else(|| "unknown".to_owned(), |found| found.to_string());
            let error = report.error.as_deref().unwrap_or("none");
            warn!(
                leader,
                found,
                signalled = report.signalled,
                error,
                "descendants of a server may be left"
            );
        }
        report
    }
}
