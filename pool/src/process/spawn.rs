use tokio::{
    process::{ChildStdin, ChildStdout},
    runtime::Handle,
};

use super::{error::SpawnError, handle::Process, spec::Spec, sys::Leader, watchdog::Watchdog};

/// A server that was just started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spawned {
    /// The process tree; dropping it kills it.
    pub process: Process,
    /// Where the server reads requests. Dropping it asks the server to end.
    pub stdin: ChildStdin,
    /// Where the server writes answers. It may stay open after the server's end, held by a child of
    /// it: wait for [`Process::exited`] too.
    pub stdout: ChildStdout,
}

/// Starts a server in a process group of its own, with nothing inherited but `spec`.
///
/// Its stderr is drained from the start and the last `stderr_limit` bytes are kept (8 KiB is a good
/// number). The first server of a `watchdog` starts it.
///
/// # Errors
///
/// If the program cannot be started; [`SpawnError::is_permanent`] says whether it is of use to try
/// again. No process is left then.
///
/// # Panics
///
/// If the current tokio runtime was built without its I/O driver.
pub fn spawn(spec: &Spec, watchdog: &Watchdog, stderr_limit: usize) -> Result<Spawned, SpawnError> {
    if Handle::try_current().is_err() {
        return Err(SpawnError::no_runtime(spec));
    }
    let failed = |error| SpawnError::new(spec, error);
    // Before the server, so that the host can die at any time.
    watchdog.start();
    let mark = watchdog.next_mark();
    let (name, value) = watchdog.variable(mark);
    let (leader, pipes) = Leader::start(spec, (name, &value)).map_err(failed)?;
    let process = Process::new(leader, mark, stderr_limit, watchdog.clone());
    let (stdin, stdout, stderr) = pipes.register().map_err(failed)?;
    process.stderr().drain(stderr);
    Ok(Spawned {
        process,
        stdin,
        stdout,
    })
}
