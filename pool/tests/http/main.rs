//! Streamable HTTP, over real sockets, against a server that does what a test wants.

mod basic;
mod calls;
mod connecting;
mod credentials;
mod origins;
mod outcomes;
mod sessions;
mod streams;
mod support;
