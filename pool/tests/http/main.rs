//! Streamable HTTP, over real sockets, against a server that does what a test wants.

#![allow(
    clippy::unwrap_used,
    reason = "what is set up for a test ends it where it does not work"
)]

mod basic;
mod calls;
mod connecting;
mod credentials;
mod hostile;
mod origins;
mod outcomes;
mod sessions;
mod streams;
mod support;
mod versions;
