//! What the tests and examples of `steadfast` share: the [`probe`], an MCP server that
//! misbehaves exactly as it is told.
//!
//! The crate is not published. Its binary `probe` is the same server as a program; its test
//! binaries are `it` (what needs several crates or real processes) and `selftest` (the probe's
//! own behaviour).

pub mod probe;
