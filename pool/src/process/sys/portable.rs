//! macOS and the BSDs: no pidfd and no /proc, so ends are polled for and sysinfo reads the table.
//! Not compiled in CI.

use std::{future, io, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid as RawPid, WaitId, getpgid, kill_process},
};
use sysinfo::{
    Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind,
};

use super::{
    super::table::{Identity, ProcessTable, Row},
    Sent, Signal, mark_in,
    unix::{number, pid as raw_pid},
};

/// Never tells anything.
#[derive(Debug)]
pub(super) struct Watch;

// === impl Watch ===

impl Watch {
    pub(super) fn blind() -> Self {
        Self
    }

    pub(super) fn new(_pid: u32) -> Self {
        Self
    }

    pub(super) fn changed(&self) -> impl Future<Output = ()> + use<> {
        future::ready(())
    }

    pub(super) fn wait(&self, _limit: Duration) -> bool {
        false
    }

    pub(super) fn wait_id(&self, pid: RawPid) -> WaitId<'_> {
        WaitId::Pid(pid)
    }
}

/// Sends a signal to this process. Its pid could be reused between the look and the signal, as there
/// is nothing to pin it.
pub(crate) fn signal(id: Identity, signal: Signal) -> io::Result<Sent> {
    let Some(pid) = raw_pid(id.pid) else {
        return Ok(Sent::Gone);
    };
    if identity(id.pid)? != Some(id) {
        return Ok(Sent::Gone);
    }
    match kill_process(pid, number(signal)) {
        Ok(()) => Ok(Sent::Delivered),
        Err(Errno::SRCH) => Ok(Sent::Gone),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn identity(pid: u32) -> io::Result<Option<Identity>> {
    Ok(look_at(pid)?.map(|row| row.id))
}

pub(crate) fn is_alive(id: Identity) -> bool {
    match look_at(id.pid) {
        Ok(row) => row.is_some_and(|row| row.id == id && !row.dead),
        Err(_) => true,
    }
}

/// One pass over all processes, less those that started before `since`.
pub(crate) fn table(since: u64, prefix: &[u8]) -> io::Result<ProcessTable> {
    let mut system = System::new().map_err(io::Error::other)?;
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    if system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind) == 0 {
        return Err(io::Error::other("it shows no process"));
    }
    let young = |process: &&Process| process.start_time() >= since;
    let rows = system.processes().values().filter(young);
    Ok(ProcessTable::new(
        rows.map(|process| row(process, prefix)).collect(),
    ))
}

fn look_at(pid: u32) -> io::Result<Option<Row>> {
    let mut system = System::new().map_err(io::Error::other)?;
    let pid = Pid::from_u32(pid);
    let kind = ProcessRefreshKind::nothing();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, kind);
    Ok(system.process(pid).map(|process| row(process, b"\0")))
}

fn row(process: &Process, prefix: &[u8]) -> Row {
    let pid = process.pid().as_u32();
    let environ = process.environ();
    let group = raw_pid(pid).and_then(|pid| getpgid(Some(pid)).ok());
    Row {
        // Whole seconds: a pid is not reused within one, except by a storm of processes.
        id: Identity {
            pid,
            start: process.start_time(),
        },
        ppid: process.parent().map_or(0, Pid::as_u32),
        pgid: group.map_or(0, |group| group.as_raw_nonzero().get().unsigned_abs()),
        dead: matches!(
            process.status(),
            ProcessStatus::Zombie | ProcessStatus::Dead
        ),
        mark: environ
            .iter()
            .find_map(|variable| mark_in(variable.as_encoded_bytes(), prefix)),
    }
}
