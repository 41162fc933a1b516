//! The thin platform calls: to start a process, to watch it end, to signal, to read the table.
//! What is signalled, in which order and by what proof is decided by the callers.

#[cfg(unix)]
mod guard;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;

#[cfg(target_os = "linux")]
use self::linux as platform;

pub(super) use self::{
    guard::Guard,
    platform::{is_alive, signal, table},
    unix::{Leader, StderrPipe},
};

/// The two signals that a server may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Term,
    Kill,
}

/// What became of a signal to one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Delivered,
    /// The process of that identity has ended; nobody was signalled.
    Gone,
}
