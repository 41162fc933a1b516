//! What traces and numbers say of requests. By themselves in this binary: a span that comes
//! about while nobody listens would be taken for one that nobody wants.

#[cfg(feature = "metrics")]
mod durations;
mod server;
mod spans;
mod trace;
