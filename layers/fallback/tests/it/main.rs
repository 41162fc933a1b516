//! What the fallback layer promises, seen from outside.

#![allow(
    clippy::unwrap_used,
    reason = "helper functions of tests, which the lint does not know as such"
)]

mod bounds;
mod cancel;
mod cases;
mod chain;
mod contract;
mod deadline;
mod errors;
mod generation;
mod model;
mod support;
mod traps;
