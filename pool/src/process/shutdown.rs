use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    exit::Exit,
    grace::Grace,
    handle::Process,
    sweep::SweepReport,
    sys::{self, Signal},
    table::Family,
};

/// Children often end a moment after their parent; that moment is not worth a signal.
const MOMENT: Duration = Duration::from_millis(100);

/// How a shutdown went.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shutdown {
    /// How the server's own process ended. `None` if it survived even `SIGKILL`.
    pub exit: Option<Exit>,
    /// How far it had to go, for the server or for anything it left behind.
    pub step: Step,
    /// What became of the descendants outside the server's process group.
    pub sweep: SweepReport,
    /// How many of the server's processes are not proven dead: those that hang in the kernel, or
    /// belong to another user. `None` if the process table could not be read.
    pub survivors: Option<usize>,
    /// How long it took.
    pub took: Duration,
}

/// The last step that a shutdown needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The server had ended before, maybe on the end of its input, and left nothing.
    AlreadyDead,
    /// The end of its input was enough.
    Eof,
    /// `SIGTERM` was sent.
    Term,
    /// `SIGKILL` was sent.
    Kill,
}

// === impl Process ===

impl Process {
    /// Ends the server and everything that descends from it, step by step, and returns when that is
    /// proven or the last limit is over.
    ///
    /// The server's stdin must be closed by then (drop it, best after
    /// [`note_descendants`](Self::note_descendants)); a server that exits on that gets no signal.
    /// What it leaves behind gets `SIGTERM` right after its end, as its parent has finished.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills what is left, synchronously.
    pub async fn shutdown(mut self, grace: Grace) -> Shutdown {
        let started = Instant::now();
        let mut step = self.await_end_of_input(started, grace.eof).await;
        let mut family = self.look().await;
        if step == Step::Eof && self.try_exited().is_some() && !family.is_empty() {
            family = self
                .settle(
                    family,
                    grace.eof.saturating_sub(started.elapsed()).min(MOMENT),
                )
                .await;
        }
        if !self.is_over(&family) {
            step = Step::Term;
            self.hunt.signal(&self.leader, &family, Signal::Term);
            family = self.settle(family, grace.term).await;
        }
        if !self.is_over(&family) {
            step = Step::Kill;
            family = self.kill(family, grace.kill).await;
        }
        let exit = self.try_exited();
        let survivors = family
            .count()
            .map(|left| left + usize::from(exit.is_none()));
        let sweep = self.finish(&family);
        Shutdown {
            exit,
            step,
            sweep,
            survivors,
            took: started.elapsed(),
        }
    }

    /// Looks at the process table while the tree is whole, so that a later end also finds the
    /// descendants that left the group and wiped their environment.
    ///
    /// Worth its milliseconds before the server's stdin is closed: a server that exits on that at
    /// once leaves orphans. Those that kept their environment are found without it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn note_descendants(&mut self) {
        self.look().await;
    }

    async fn await_end_of_input(&mut self, started: Instant, limit: Duration) -> Step {
        if self.try_exited().is_some() {
            return Step::AlreadyDead;
        }
        // While the leader lives its descendants can be told by their parents, so look first.
        self.look().await;
        let _ = timeout_at(end(started, limit), self.leader.exited()).await;
        Step::Eof
    }

    /// Kills until nothing is left: one that forks while it is killed needs a second round.
    async fn kill(&mut self, mut family: Family, limit: Duration) -> Family {
        // A kill is done in a moment, but not in none.
        let end = end(Instant::now(), limit.max(MOMENT));
        loop {
            self.hunt.signal(&self.leader, &family, Signal::Kill);
            let round = end
                .saturating_duration_since(Instant::now())
                .min(2 * MOMENT);
            family = self.settle(family, round).await;
            if self.is_over(&family) || Instant::now() >= end {
                return family;
            }
        }
    }

    /// Waits until the leader and the family are gone, for `limit` at most. Returns what a new look
    /// finds alive then.
    async fn settle(&mut self, family: Family, limit: Duration) -> Family {
        let end = end(Instant::now(), limit);
        let _ = timeout_at(end, self.leader.exited()).await;
        let mut pause = Duration::from_millis(2);
        // What cannot be seen has to be waited out.
        let left = || family.unknown || family.iter().any(|id| sys::is_alive(*id));
        while Instant::now() < end && left() {
            sleep(pause).await;
            pause = (pause * 2).min(MOMENT / 2);
        }
        self.look().await
    }

    fn is_over(&self, family: &Family) -> bool {
        family.is_empty() && self.try_exited().is_some()
    }
}

/// A limit too large to be added is a limit that is never reached.
fn end(start: Instant, limit: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    start + limit.min(FAR)
}
