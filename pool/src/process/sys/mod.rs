//! The thin platform calls: to start a process, to watch it end, to signal, to read the table.
//! What is signalled, in which order and by what proof is decided by the callers.
//!
//! Linux is what is tested. The others are type-checked by hand, and compiled in no CI.

#[cfg(unix)]
mod guard;
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use self::linux as platform;
#[cfg(all(test, target_os = "linux"))]
pub(super) use self::linux::identity;

#[cfg(all(unix, not(target_os = "linux")))]
mod portable;
#[cfg(all(unix, not(target_os = "linux")))]
use self::portable as platform;

#[cfg(windows)]
mod windows;

#[cfg(windows)]
pub(super) use self::windows::{Guard, Leader, StderrPipe, is_alive, signal, table};
#[cfg(unix)]
pub(super) use self::{
    guard::Guard,
    platform::{is_alive, signal, table},
    unix::{Leader, StderrPipe},
};

/// The number of the mark that this variable is, if it begins as marks do.
#[cfg(unix)]
fn mark_in(variable: &[u8], prefix: &[u8]) -> Option<u64> {
    let number = variable.strip_prefix(prefix)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The two signals that a server may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Term,
    Kill,
}

/// What became of a signal to one process.
#[cfg_attr(
    windows,
    allow(dead_code, reason = "a job object gets it, not a process")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Delivered,
    /// The process of that identity has ended; nobody was signalled.
    Gone,
}
