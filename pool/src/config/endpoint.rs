//! Where a server is, and how it is reached.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use secrecy::SecretString;

use super::{family::Family, in_process::InProcess};

/// Where a server is: exactly what its transport needs, and nothing else.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Endpoint {
    /// Start this program and speak over its stdin and stdout.
    Stdio(Program),
    /// Open a WebSocket to this address.
    WebSocket(Remote),
    /// Speak streamable HTTP with this address.
    Http(Remote),
    /// Let this serve a connection in memory.
    InProcess(InProcess),
}

/// A program to start. Its `Debug` shows only the command.
#[derive(Clone)]
#[non_exhaustive]
pub struct Program {
    /// The program, by path or by name.
    pub command: String,
    /// Its arguments. People put tokens in them, so they are secret.
    pub args: Vec<SecretString>,
    /// What its environment has besides what is inherited.
    pub env: BTreeMap<String, SecretString>,
    /// Its working directory; the host's if none is given.
    pub cwd: Option<PathBuf>,
}

/// An address of a server elsewhere. Its `Debug` shows nothing of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Remote {
    /// The address, with a scheme. Its user, path and query may hold a token.
    pub url: SecretString,
    /// Headers to send; the names are in lower case, since their case has no meaning.
    pub headers: BTreeMap<String, SecretString>,
}

// === impl Endpoint ===

impl Endpoint {
    /// The kind of transport.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self {
            Self::Stdio(_) => Family::Stdio,
            Self::WebSocket(_) => Family::WebSocket,
            Self::Http(_) => Family::Http,
            Self::InProcess(_) => Family::InProcess,
        }
    }
}

// === impl Program ===

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

// === impl Remote ===

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}
