//! What is wrong, where, and what is allowed instead: always one line.

use std::{borrow::Cow, error::Error, fmt, fmt::Write as _, io, sync::Arc};

/// One thing that is wrong in a configuration.
///
/// Its `Display` is one line that names the file (if there is one), the server, the
/// field and what is allowed there. It never shows a value, since any value may be a
/// secret.
#[derive(Clone)]
pub struct ConfigError(Arc<Detail>);

/// Everything that is wrong in one configuration, one line each.
#[derive(Clone, Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

/// Something in a configuration that has no effect, and so may be a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    place: Place,
    note: Note,
}

#[derive(Debug)]
struct Detail {
    place: Place,
    problem: Problem,
    allowed: Cow<'static, str>,
}

/// A place in a configuration, from the outside in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Option<Arc<str>>,
    pub(crate) position: Option<(usize, usize)>,
    pub(crate) server: Option<Arc<str>>,
    pub(crate) field: Option<Box<str>>,
}

/// Why a value was refused. None of these holds the value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("is not UTF-8")]
    NotUtf8,
    #[error("not JSON: {}", without_position(.0))]
    Syntax(#[source] serde_json::Error),
    #[error("found {0}")]
    Found(&'static str),
    #[error("missing")]
    Missing,
    #[error("empty")]
    Empty,
    #[error("given twice")]
    Duplicate,
    #[error("unknown")]
    Unknown,
    #[error("out of range")]
    OutOfRange,
    #[error("not a whole number of 0 or more")]
    NotWhole,
    #[error("cannot stand beside `{0}`")]
    Conflict(&'static str),
    #[error("does not fit `{0}`")]
    Misfit(&'static str),
    #[error("server-sent events as a transport are deprecated and not supported")]
    Sse,
    #[error("variable `{0}` is not set")]
    Unset(String),
    #[error("`${{` is not followed by a variable and `}}`")]
    BadVariable,
    #[error("has no scheme")]
    NoScheme,
    #[error("unknown scheme")]
    UnknownScheme,
    #[error("has no host")]
    NoHost,
    #[error("has a character that is not allowed")]
    Character,
    #[error("{0}")]
    NoEffect(Note),
}

/// Why something has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Note {
    #[error("unknown field")]
    Unknown,
    #[error("has no effect here, it belongs under `steadfast`")]
    Ours,
    #[error("has no meaning for {0}")]
    OtherTransport(&'static str),
    #[error("the transport sets this header itself")]
    OwnHeader,
}

// === impl ConfigError ===

impl ConfigError {
    pub(crate) fn new(place: Place, problem: Problem, allowed: Cow<'static, str>) -> Self {
        Self(Arc::new(Detail {
            place,
            problem,
            allowed,
        }))
    }

    /// The file the configuration was read from, if it was a file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.0.place.file.as_deref()
    }

    /// The line, from 1, where the text stops being JSON.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.0.place.position.map(|(line, _)| line)
    }

    /// The column, from 1, where the text stops being JSON.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.0.place.position.map(|(_, column)| column)
    }

    /// The name of the server, if one server is at fault.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.0.place.server.as_deref()
    }

    /// The field, as a path from the server: `steadfast.limits.read_ms`, `args[2]`.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.0.place.field.as_deref()
    }

    /// What is allowed there, in words.
    #[must_use]
    pub fn allowed(&self) -> &str {
        &self.0.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail {
            place,
            problem,
            allowed,
        } = &*self.0;
        write!(OneLine(f), "{place}{problem}; allowed: {allowed}")
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConfigError")
            .field(&format_args!("{self}"))
            .finish()
    }
}

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.problem.source()
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    pub(crate) const fn new(errors: Vec<ConfigError>) -> Self {
        Self(errors)
    }

    /// The errors, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigError> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a ConfigError;
    type IntoIter = std::slice::Iter<'a, ConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_char('\n')?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for ConfigErrors {}

// === impl ConfigWarning ===

impl ConfigWarning {
    pub(crate) const fn new(place: Place, note: Note) -> Self {
        Self { place, note }
    }

    pub(crate) fn into_error(self) -> ConfigError {
        ConfigError::new(
            self.place,
            Problem::NoEffect(self.note),
            "leaving it out".into(),
        )
    }

    /// The name of the server.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.place.server.as_deref()
    }

    /// The field, as a path from the server.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.place.field.as_deref()
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(OneLine(f), "{}{}; ignored", self.place, self.note)
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.position) {
            (Some(file), Some((line, column))) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some((line, column))) => write!(f, "line {line}, column {column}: ")?,
            (None, None) => {}
        }
        if let Some(server) = &self.server {
            write!(f, "server {server:?}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        Ok(())
    }
}

/// Escapes whatever would break the line: names come from the file, and may hold
/// anything.
struct OneLine<'a, 'f>(&'a mut fmt::Formatter<'f>);

// === impl OneLine ===

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') {
                write!(self.0, "{}", char.escape_default())?;
            } else {
                self.0.write_char(char)?;
            }
        }
        Ok(())
    }
}

/// The parser's message without its own "at line … column …", which we say first.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}
