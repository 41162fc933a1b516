//! The time limits from outside, on a paused clock.
#![allow(
    clippy::unwrap_used,
    reason = "these are tests, and clippy does not see it in their helpers"
)]

mod cancel;
mod cases;
mod contract;
mod deadline;
mod errors;
mod flight;
mod limits;
mod metrics;
mod properties;
mod settings;
mod traps;
mod wire;
