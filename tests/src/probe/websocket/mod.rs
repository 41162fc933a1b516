//! The probe over WebSockets.
//!
//! Frames are written on the bare socket, since a library would not let one break them. In
//! between, a connection is the same as over stdin and stdout:
//!
//! ```text
//! socket ── frames ──► lines ──► connect() ──► lines ──► frames ──► socket
//! ```

mod connection;
mod frame;
mod listener;
mod upgrade;

pub(crate) use self::listener::serve_process;
