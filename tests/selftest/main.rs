//! The probe does what its knobs say: each group of them over pipes in memory, and what needs a
//! process with the real binary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod cancel;
mod driver;
mod handshake;
mod http;
mod knobs;
mod lists;
mod logs;
#[cfg(unix)]
mod process;
mod progress;
mod tasks;
mod websocket;
mod wire;
