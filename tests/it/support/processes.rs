//! Looking at processes from outside, and killing them.

use std::{collections::BTreeSet, fs, process};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::{SOON, ms};

/// Waits until `done`, for [`SOON`] at most; whether it is.
pub(crate) async fn until(done: impl Fn() -> bool) -> bool {
    let end = Instant::now() + SOON;
    while !done() {
        if Instant::now() > end {
            return false;
        }
        sleep(ms(10)).await;
    }
    true
}

/// None of these probes is left soon.
pub(crate) async fn gone(pids: impl IntoIterator<Item = u32>) {
    let pids: BTreeSet<u32> = pids.into_iter().collect();
    let left = || pids.iter().filter(|pid| is_alive(**pid));
    let none = until(|| left().next().is_none()).await;
    assert!(none, "processes are left: {:?}", left().collect::<Vec<_>>());
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Too late is as good: then it has ended by itself.
    let _ = kill_process(pid.expect("a pid"), signal);
}

/// Kills it and returns when it is dead, before anything else in this runtime has noticed.
pub(crate) fn kill_unseen(pid: u32) {
    signal(pid, Signal::KILL);
    wait_unseen(pid);
}

/// Returns when it is dead, before anything else in this runtime has noticed.
pub(crate) fn wait_unseen(pid: u32) {
    let end = Instant::now() + SOON;
    while !is_dead(pid) {
        assert!(Instant::now() < end, "process {pid} lives on");
        std::hint::spin_loop();
    }
}

/// Whether all of its threads have ended. The first may lie there as a zombie while another
/// still holds the pipes open, and what is written to them then was delivered to nobody.
fn is_dead(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    threads <= 1 && state_and_parent(pid).is_none_or(|(state, _)| state == "Z")
}

/// Whether a probe runs under this pid, or lies unburied. One whose parent is process 1 is
/// not ours to bury; and a pid may belong to somebody else by now.
fn is_alive(pid: u32) -> bool {
    let Some((state, parent)) = state_and_parent(pid) else {
        return false;
    };
    if state == "Z" {
        return parent == process::id();
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.windows(7).any(|part| part == b"--probe")
}

/// `None` if there is no such process.
fn state_and_parent(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before this may hold anything, also blanks and brackets.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
