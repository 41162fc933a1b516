//! The process that a probe starts: it does nothing but live on and hold stdout.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use super::knobs::HelperKnobs;

/// Starts the helper and returns its pid once it is as its knobs say.
pub(crate) fn start(knobs: &HelperKnobs, output: &File) -> io::Result<u32> {
    let (mut ready, tell_ready) = io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["--probe", "--helper", &serde_json::to_string(knobs)?])
        // Its stdin is the writing end of a pipe: the one stream it needs nothing from.
        .stdin(tell_ready);
    if knobs.quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    } else {
        command.stdout(output.try_clone()?);
    }
    let child = command.spawn()?;
    // The command holds the writing end as well, and would hide a helper that failed.
    drop(command);
    ready.read_exact(&mut [0])?;
    Ok(child.id())
}

/// The helper's whole life.
pub(crate) async fn run(knobs: &HelperKnobs) -> io::Result<i32> {
    if knobs.setsid {
        rustix::process::setsid()?;
    }
    // A handler that does nothing, for as long as this lives.
    let _ignored = knobs
        .ignore_sigterm
        .then(|| signal(SignalKind::terminate()))
        .transpose()?;
    File::from(io::stdin().as_fd().try_clone_to_owned()?).write_all(&[1])?;
    tokio::time::sleep(knobs.life()).await;
    Ok(0)
}
