//! What needs several crates, or real processes.
//!
//! Processes are looked at as Linux shows them, so tests with real ones run only there.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; the lint's own exception does not reach helpers"
)]

mod ask;
mod config;
mod dead;
mod errors;
mod refused;
mod stack;

#[cfg(target_os = "linux")]
mod asked;
#[cfg(target_os = "linux")]
mod bulkhead;
#[cfg(target_os = "linux")]
mod cancel;
#[cfg(target_os = "linux")]
mod endings;
#[cfg(target_os = "linux")]
mod frames;
#[cfg(target_os = "linux")]
mod framing;
#[cfg(target_os = "linux")]
mod hangs;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod in_process;
#[cfg(target_os = "linux")]
mod inherited;
#[cfg(target_os = "linux")]
mod left_behind;
#[cfg(target_os = "linux")]
mod lists;
#[cfg(target_os = "linux")]
mod long;
#[cfg(target_os = "linux")]
mod marked;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod over;
#[cfg(target_os = "linux")]
mod repeats;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(target_os = "linux")]
mod silent;
#[cfg(target_os = "linux")]
mod starts;
#[cfg(target_os = "linux")]
mod stdio;
#[cfg(target_os = "linux")]
mod streamable;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod tasks;
#[cfg(target_os = "linux")]
mod upgrade;
#[cfg(target_os = "linux")]
mod versions;
#[cfg(target_os = "linux")]
mod websocket;
