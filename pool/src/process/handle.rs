use std::fmt;

use super::{
    census::Look,
    exit::Exit,
    stderr::StderrTail,
    sweep::{Hunt, SweepReport},
    sys::Leader,
    table::{Ancestor, Family},
    watchdog::Watchdog,
};

/// A running server and all that descends from it.
///
/// Dropping it kills the whole tree at once ([`kill_now`](Self::kill_now)), inside a runtime or
/// not; [`shutdown`](Self::shutdown) does it kindly.
pub struct Process {
    pub(super) leader: Leader,
    pub(super) hunt: Hunt,
    mark: u64,
    pub(super) watchdog: Watchdog,
    stderr: StderrTail,
}

// === impl Process ===

impl Process {
    /// Takes charge of a leader: from here on its end is certain. `mark` is the number by which
    /// all its descendants can be told.
    pub(super) fn new(leader: Leader, mark: u64, stderr_limit: usize, watchdog: Watchdog) -> Self {
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

    /// Forgets the group and waits for the leader, in this order: once it is waited for, its id may
    /// belong to somebody else.
    pub(super) fn finish(&mut self, left: &Family) -> SweepReport {
        self.watchdog.remove(self.pid());
        self.leader.reap();
        self.stderr.close();
        self.hunt.report(self.pid(), left)
    }

    /// One look at the process table, shared with others who look now.
    pub(super) async fn look(&mut self) -> Family {
        let look = self.watchdog.census().look(self.leader.id().start).await;
        self.learn(look)
    }

    pub(super) fn learn(&mut self, look: Look) -> Family {
        let (leader, mark) = (self.leader.id(), self.mark);
        self.hunt.look(Ancestor { leader, mark }, look)
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
