use std::time::Duration;

use tokio::time::Instant;

use super::{handle::Process, sweep::SweepReport, sys::Signal, table::Family};

/// How long a synchronous kill waits for all that it killed to end. It takes a millisecond or two,
/// unless a process hangs in the kernel.
const KILL_LIMIT: Duration = Duration::from_millis(500);

// === impl Process ===

impl Process {
    /// Kills the server and all its descendants, and waits for it: within milliseconds, and no
    /// longer than half a second. Once it returned, `try_exited` says how the server ended. Does
    /// nothing a second time.
    pub fn kill_now(&mut self) -> SweepReport {
        if self.leader.is_reaped() {
            return self.hunt.report(self.pid(), &Family::default());
        }
        let report = kill_together(&mut [&mut *self]).pop();
        report.unwrap_or_default()
    }

    /// Kills many servers as [`kill_now`](Self::kill_now) does one, and waits for all of them
    /// together, with two looks at the process table for all and not for each.
    pub fn kill_all(processes: impl IntoIterator<Item = Self>) {
        let mut left: Vec<_> = processes.into_iter().collect();
        left.retain(|process| !process.leader.is_reaped());
        while let Some(last) = left.last() {
            // The marks of one watchdog mean nothing to another.
            let watchdog = last.watchdog.clone();
            let of_it = |process: &mut Self| process.watchdog.is(&watchdog);
            let mut together: Vec<_> = left.extract_if(.., of_it).collect();
            kill_together(&mut together.iter_mut().collect::<Vec<_>>());
        }
    }
}

/// Kills servers of one watchdog, none of them reaped.
fn kill_together(processes: &mut [&mut Process]) -> Vec<SweepReport> {
    let oldest = processes
        .iter()
        .min_by_key(|process| process.leader.id().start);
    let Some(oldest) = oldest else {
        return Vec::new();
    };
    let (since, census) = (oldest.leader.id().start, oldest.watchdog.census().clone());
    // While a leader lives its descendants can be told by their parents, so look first.
    let look = census.look_now(since);
    for process in &mut *processes {
        let family = process.learn(look.clone());
        process.hunt.signal(&process.leader, &family, Signal::Kill);
    }
    let end = Instant::now() + KILL_LIMIT;
    for process in &*processes {
        let left = end.saturating_duration_since(Instant::now());
        process.leader.wait_blocking(left);
    }
    // What was forked between the look and the signal.
    let look = census.look_now(since);
    let finish = |process: &mut &mut Process| {
        let family = process.learn(look.clone());
        if !family.is_empty() {
            process.hunt.signal(&process.leader, &family, Signal::Kill);
        }
        process.finish(&family)
    };
    processes.iter_mut().map(finish).collect()
}
