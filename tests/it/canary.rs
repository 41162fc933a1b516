//! What is printed, logged and counted, all of it in one place; a test binary of its own,
//! since logs and numbers go to whoever listens for the whole process.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; the lint's own exception does not reach helpers"
)]
#![allow(
    dead_code,
    unused_imports,
    reason = "the other test binaries use the rest of what they share"
)]

mod listen;
mod secrets;
mod support;
mod traced;
mod warned;

/// One test after the other: each hears everything.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
