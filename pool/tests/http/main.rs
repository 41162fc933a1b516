//! Streamable HTTP, over real sockets, against a server that does what a test wants.

mod basic;
mod outcomes;
#[allow(dead_code, unused_imports, reason = "for the tests of faults")]
mod support;
