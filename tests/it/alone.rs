//! What can only be measured alone: memory, descriptors, and a run that takes the whole machine.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; the lint's own exception does not reach helpers"
)]
#![allow(
    dead_code,
    unused_imports,
    reason = "the other test binary uses the rest of what they share"
)]

mod hygiene;
mod many;
mod memory;
mod memory_http;
#[path = "http/process.rs"]
mod process;
mod shared_memory;
mod support;
mod thousand;
mod usage;

/// One test after the other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
