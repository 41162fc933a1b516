//! The kinds of transport, and which of them sessions share.

use std::{fmt, str::FromStr};

use super::error::{ConfigError, Place, Problem};
use super::words;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// A child process, spoken to over its stdin and stdout.
    Stdio,
    /// A WebSocket connection.
    WebSocket,
    /// Streamable HTTP.
    Http,
    /// A server that lives in this process.
    InProcess,
}

/// The families whose servers are shared between sessions unless a server says
/// otherwise.
///
/// The default is `stdio` and `websocket`. HTTP is left out, since its headers may
/// carry the credentials of one user; a server is opted in with `"shared": true`.
/// Servers in this process are never shared.
///
/// ```
/// use steadfast_pool::{Family, SharedFamilies};
///
/// let shared: SharedFamilies = "stdio, http".parse().unwrap();
/// assert!(shared.contains(Family::Http));
/// assert!("stdio, htpp".parse::<SharedFamilies>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedFamilies {
    stdio: bool,
    websocket: bool,
    http: bool,
}

const ALLOWED: &str = "none, or a comma list of stdio, websocket, http";

// === impl Family ===

impl Family {
    /// The name used in settings and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::WebSocket => "websocket",
            Self::Http => "http",
            Self::InProcess => "in_process",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl SharedFamilies ===

impl SharedFamilies {
    /// No family: only servers that ask for it are shared.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            stdio: false,
            websocket: false,
            http: false,
        }
    }

    /// This set and `family`. [`Family::InProcess`] cannot be added.
    #[must_use]
    pub const fn with(mut self, family: Family) -> Self {
        match family {
            Family::Stdio => self.stdio = true,
            Family::WebSocket => self.websocket = true,
            Family::Http => self.http = true,
            Family::InProcess => {}
        }
        self
    }

    /// Whether servers of this family are shared by default.
    #[must_use]
    pub const fn contains(self, family: Family) -> bool {
        match family {
            Family::Stdio => self.stdio,
            Family::WebSocket => self.websocket,
            Family::Http => self.http,
            Family::InProcess => false,
        }
    }

    /// Whether a server of `family` is shared, given its own `shared` setting.
    pub(crate) const fn shares(self, family: Family, own: Option<bool>) -> bool {
        match (family, own) {
            (Family::InProcess, _) => false,
            (_, Some(own)) => own,
            (_, None) => self.contains(family),
        }
    }
}

impl Default for SharedFamilies {
    fn default() -> Self {
        Self::none().with(Family::Stdio).with(Family::WebSocket)
    }
}

impl FromStr for SharedFamilies {
    type Err = ConfigError;

    /// Reads a comma list such as `stdio,http`, or `none`. Case and spaces do not
    /// matter.
    ///
    /// # Errors
    ///
    /// An unknown or empty word: a typo must not turn sharing off, nor be ignored.
    fn from_str(list: &str) -> Result<Self, ConfigError> {
        if words::same(list.trim(), "none") {
            return Ok(Self::none());
        }
        list.split(',')
            .map(str::trim)
            .try_fold(Self::none(), |set, word| {
                words::find(word, words::SHARED)
                    .map(|family| set.with(family))
                    .ok_or_else(|| unknown_family(word))
            })
    }
}

fn unknown_family(word: &str) -> ConfigError {
    let place = Place {
        field: Some(format!("shared family {word:?}").into()),
        ..Place::default()
    };
    ConfigError::new(place, Problem::Unknown, ALLOWED.into())
}
