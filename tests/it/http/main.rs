//! Servers over streamable HTTP, with real sockets.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; the lint's own exception does not reach helpers"
)]

mod asked;
mod bodies;
mod cancels;
mod credentials;
mod ends;
mod matrix;
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "other test binaries use the rest of what they share"
)]
#[path = "../over/mod.rs"]
mod over;
mod place;
mod process;
mod protocol;
mod repeats;
mod sessions;
mod several;
mod starts;
#[allow(
    dead_code,
    unused_imports,
    reason = "other test binaries use the rest of what they share"
)]
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod unreachable;
