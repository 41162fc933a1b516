//! WebSockets and their faults.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{HttpKnobs, Tls};

/// How the probe serves over WebSockets.
///
/// Each connection is a client of its own. All other knobs hold too: what they call a line is
/// a text frame, stdout is what leaves the server, and its exit is what `on_exit` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketKnobs {
    /// The port on 127.0.0.1; 0: one that is free.
    pub port: u16,
    /// File to which each upgrade appends one line; see
    /// [`HttpRequests`](crate::probe::HttpRequests).
    pub requests: Option<PathBuf>,
    /// Speak TLS.
    pub tls: Option<Tls>,
    /// File to which the certificate is written, as PEM.
    pub cert_file: Option<PathBuf>,
    /// How large the receive buffer of a connection is, in bytes; absent: as the system likes.
    pub receive_buffer: Option<u32>,

    /// Never answer an upgrade.
    pub mute: bool,
    /// Close the connection instead of answering an upgrade.
    pub hang_up: bool,
    /// Answer an upgrade with these bytes, and close.
    pub raw: Option<String>,
    /// Answer an upgrade with this status.
    pub status: Option<u16>,
    /// Only the first so many upgrades are answered like that.
    pub times: Option<u64>,
    /// More headers of the answer.
    pub headers: BTreeMap<String, String>,
    /// The body of an answer with another status.
    pub body: Option<String>,
    /// Select no subprotocol.
    pub no_subprotocol: bool,

    /// Send binary frames.
    pub binary: bool,
    /// Send frames of so many bytes, several for one message.
    pub fragment: Option<NonZeroUsize>,
    /// Send a ping before each message, and the message once the ping was answered.
    pub ping: bool,
    /// What an exit does.
    pub on_exit: OnExit,
    /// The code of the close frame.
    pub close_code: Option<u16>,
    /// The reason in the close frame.
    pub close_reason: String,
    /// Do nothing about a close frame.
    pub ignore_close: bool,
}

/// What the exit of a server that has many connections does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExit {
    /// The process exits, with the code.
    #[default]
    Process,
    /// This connection is closed by a close frame.
    Close,
    /// This connection ends without one.
    Eof,
    /// This connection is reset.
    Reset,
}

// === impl WebSocketKnobs ===

impl WebSocketKnobs {
    /// What of it is the same over HTTP.
    pub(crate) fn as_http(&self) -> HttpKnobs {
        HttpKnobs {
            tls: self.tls,
            cert_file: self.cert_file.clone(),
            ..HttpKnobs::default()
        }
    }
}
