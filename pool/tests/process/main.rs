//! Process containment with real process trees. Linux only, as the trees are told by /proc.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "the allowance for tests does not reach their helper functions"
)]

mod crash;
mod dropped;
mod host;
mod leaks;
mod pipes;
mod shutdown;
mod support;
