//! What a configuration means, and what is said when it means nothing.

#![allow(
    clippy::unwrap_used,
    reason = "a test's helper may panic like the test itself"
)]

mod calls;
mod errors;
mod numbers;
mod read;
mod secrets;
mod wrong;
