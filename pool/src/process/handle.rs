use std::{fmt, time::Duration};

use super::{
    exit::Exit,
    stderr::StderrTail,
    sweep::{Hunt, SweepReport},
    sys::{self, Leader, Signal},
    table::Family,
    watchdog::Watchdog,
};

/// How long a synchronous kill waits for the process to end. It takes a millisecond or two, unless
/// the process hangs in the kernel.
const KILL_LIMIT: Duration = Duration::from_millis(500);

/// A running server and all that descends from it.
///
/// Dropping it kills the whole tree at once ([`kill_now`](Self::kill_now)), inside a runtime or
/// not; [`shutdown`](Self::shutdown) does it kindly.
pub struct Process {
    pub(super) leader: Leader,
    pub(super) hunt: Hunt,
    pub(super) mark: String,
    watchdog: Watchdog,
    stderr: StderrTail,
}

// === impl Process ===

impl Process {
    /// Takes charge of a leader: from here on its end is certain. `mark` is the variable that all
    /// its descendants carry.
    pub(super) fn new(
        leader: Leader,
        mark: String,
        stderr_limit: usize,
        watchdog: Watchdog,
    ) -> Self {
        watchdog.add(leader.id().pid);
        let stderr = StderrTail::new(stderr_limit);
        Self {
            leader,
            hunt: Hunt::default(),
            mark,
            watchdog,
            stderr,
        }
    }

    /// The pid of the server, which is also the id of its process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.leader.id().pid
    }

    /// Resolves when the server's own process has ended, even if its children still hold its pipes.
    ///
    /// Any number may wait. The dead process is kept as a zombie until the shutdown or drop, so
    /// that its pid cannot be reused while the rest of its group is still to be signalled.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn exited(&self) -> Exit {
        self.leader.exited().await
    }

    /// The same as a future of its own, which borrows nothing and may outlive the process.
    pub fn exit(&self) -> impl Future<Output = Exit> + Send + use<> {
        let end = self.leader.end();
        async move { end.exited().await }
    }

    /// How the server's own process ended, if it has.
    #[must_use]
    pub fn try_exited(&self) -> Option<Exit> {
        self.leader.try_exited()
    }

    /// The last lines that the server wrote to its stderr.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.stderr.text()
    }

    /// The same as a handle that outlives the process.
    #[must_use]
    pub fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Kills the server and all its descendants, and waits for it: within milliseconds, and no
    /// longer than half a second. Once it returned, `try_exited` says how the server ended. Does
    /// nothing a second time.
    pub fn kill_now(&mut self) -> SweepReport {
        if self.leader.is_reaped() {
            return self.hunt.report(self.pid(), &Family::default());
        }
        // While the leader lives its descendants can be told by their parents, so look first.
        let family = self.look_now();
        self.hunt.signal(&self.leader, &family, Signal::Kill);
        self.leader.wait_blocking(KILL_LIMIT);
        // What was forked between the look and the signal.
        let family = self.look_now();
        if !family.is_empty() {
            self.hunt.signal(&self.leader, &family, Signal::Kill);
        }
        self.finish(&family)
    }

    /// Forgets the group and waits for the leader, in this order: once it is waited for, its id may
    /// belong to somebody else.
    pub(super) fn finish(&mut self, left: &Family) -> SweepReport {
        self.watchdog.remove(self.pid());
        self.leader.reap();
        self.stderr.close();
        self.hunt.report(self.pid(), left)
    }

    pub(super) fn look_now(&mut self) -> Family {
        let id = self.leader.id();
        self.hunt.look(id, sys::table(id, self.mark.as_bytes()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.leader.is_reaped() {
            self.kill_now();
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid())
            .field("exit", &self.try_exited())
            .finish_non_exhaustive()
    }
}
