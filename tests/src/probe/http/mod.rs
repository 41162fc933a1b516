//! The probe over streamable HTTP.
//!
//! HTTP is spoken on the bare socket, since most faults lie below what a framework lets one
//! do: half bodies, resets, heads that never end.
//!
//! ```text
//! Gate (listens, goes down) ──► connection (one request after the other)
//!                                   │ Head, body            ▲ Reply, with its cut
//!                                   ▼                       │
//!                               Site::reply ──► Session ──► Stream (what a request is answered)
//! ```

mod body;
mod connection;
mod deliver;
mod endpoint;
mod gate;
mod head;
mod probe;
mod process;
mod reply;
mod requests;
mod rules;
mod sessions;
mod site;
mod socket;
mod stream;
mod tls;

pub(crate) use self::head::Head;
pub use self::probe::HttpProbe;
pub(crate) use self::process::{ended, serve_process};
pub(crate) use self::requests::Recorder;
pub use self::requests::{HttpRequest, HttpRequests};
pub(crate) use self::socket::Socket;
pub(crate) use self::tls::Cipher;
