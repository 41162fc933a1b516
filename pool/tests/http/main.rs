//! Streamable HTTP, over real sockets, against a server that does what a test wants.

mod basic;
mod calls;
mod outcomes;
mod sessions;
mod streams;
#[allow(dead_code, unused_imports, reason = "for the tests of faults")]
mod support;
