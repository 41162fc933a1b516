use std::{collections::HashSet, io};

use tracing::warn;

use super::{
    census::Look,
    sys::{self, Leader, Sent, Signal},
    table::{Ancestor, Family, Identity},
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
    pub(super) fn look(&mut self, ancestor: Ancestor, look: Look) -> Family {
        let table = match look {
            Ok(table) => table,
            Err(error) => {
                self.blind = true;
                self.error = Some(format!("cannot read the process table: {error}"));
                return Family::unknown();
            }
        };
        // Once found, a process stays ours although its parent died and its mark was wiped.
        let known: Vec<_> = self.found.iter().copied().collect();
        let family = table.family(ancestor, &known, std::process::id());
        self.found
            .extend(family.escaped.iter().chain(&family.beyond));
        family
    }

    /// Signals the group, and each of `family` that left it.
    pub(super) fn signal(&mut self, leader: &Leader, family: &Family, signal: Signal) {
        if let Err(error) = leader.signal_group(signal) {
            self.error = Some(format!("cannot signal the process group: {error}"));
        }
        self.signal_each(&family.escaped, |id| sys::signal(id, signal));
    }

    fn signal_each(&mut self, ids: &[Identity], send: impl Fn(Identity) -> io::Result<Sent>) {
        for id in ids {
            if self.signalled.len() >= MAX_SIGNALLED && !self.signalled.contains(id) {
                continue;
            }
            match send(*id) {
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

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use super::{
        super::table::{ProcessTable, Row},
        *,
    };

    const LEADER: Identity = Identity {
        pid: 2000,
        start: 50,
    };

    const ANCESTOR: Ancestor = Ancestor {
        leader: LEADER,
        mark: 7,
    };

    #[test]
    fn i08_of_300_descendants_256_are_signalled_and_300_reported() {
        let (mut hunt, sent) = (Hunt::default(), Cell::new(0));
        for _ in 0..3 {
            let family = hunt.look(ANCESTOR, escaped(300));
            hunt.signal_each(&family.escaped, |_| {
                sent.set(sent.get() + 1);
                Ok(Sent::Delivered)
            });
        }

        let left = hunt.look(ANCESTOR, escaped(300));
        let report = hunt.report(LEADER.pid, &left);

        assert_eq!(sent.get(), 3 * 256);
        assert_eq!((report.found, report.signalled), (Some(300), 256));
        assert!(!report.is_complete());
    }

    #[test]
    fn what_ended_by_itself_needed_no_signal() {
        let mut hunt = Hunt::default();
        hunt.look(ANCESTOR, escaped(300));

        let report = hunt.report(LEADER.pid, &Family::default());

        assert_eq!((report.found, report.signalled), (Some(300), 300));
        assert!(report.is_complete());
    }

    #[test]
    fn what_was_found_once_stays_ours_without_parent_or_mark() {
        let mut hunt = Hunt::default();
        hunt.look(ANCESTOR, escaped(1));

        let orphan = row(2, 1, 100);
        let family = hunt.look(ANCESTOR, look(vec![orphan]));

        assert_eq!(family.escaped, [orphan.id]);
    }

    #[test]
    fn a_refused_signal_and_an_unreadable_table_are_reported() {
        let mut hunt = Hunt::default();
        let family = hunt.look(ANCESTOR, escaped(2));
        hunt.signal_each(&family.escaped, |id| match id.pid {
            2 => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(Sent::Gone),
        });
        let report = hunt.report(LEADER.pid, &family);
        assert_eq!((report.found, report.signalled), (Some(2), 1));
        assert!(
            report
                .error
                .as_ref()
                .is_some_and(|error| error.contains("process 2"))
        );

        let blind = hunt.look(ANCESTOR, Err(Arc::new(io::ErrorKind::NotFound.into())));
        assert!(!blind.is_empty(), "unknown is not nothing");
        assert_eq!(hunt.report(LEADER.pid, &blind).found, None);
    }

    /// A leader with so many children in groups of their own.
    fn escaped(count: u32) -> Look {
        let children = (1..=count).map(|n| row(n + 1, LEADER.pid, 100));
        let leader = Row {
            id: LEADER,
            ..row(LEADER.pid, 1, LEADER.start)
        };
        look(children.chain([leader]).collect())
    }

    fn look(rows: Vec<Row>) -> Look {
        Ok(Arc::new(ProcessTable::new(rows)))
    }

    fn row(pid: u32, ppid: u32, start: u64) -> Row {
        Row {
            id: Identity { pid, start },
            ppid,
            pgid: pid,
            dead: false,
            mark: None,
        }
    }
}
