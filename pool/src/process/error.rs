use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind},
    path::Path,
};

use super::spec::Spec;

/// Why a server could not be started. One line, and it names the program.
#[derive(Debug)]
pub struct SpawnError {
    program: String,
    reason: Reason,
    source: io::Error,
}

#[derive(Debug)]
enum Reason {
    NotFound,
    NoInterpreter,
    NotExecutable,
    NoDirectory(String),
    Invalid,
    NoRuntime,
    Io,
}

// === impl SpawnError ===

impl SpawnError {
    pub(super) fn new(spec: &Spec, source: io::Error) -> Self {
        let reason = Reason::of(spec, &source);
        Self {
            program: spec.program().to_string_lossy().into_owned(),
            reason,
            source,
        }
    }

    pub(super) fn no_runtime(spec: &Spec) -> Self {
        Self {
            program: spec.program().to_string_lossy().into_owned(),
            reason: Reason::NoRuntime,
            source: io::Error::other("there is no reactor running"),
        }
    }

    /// Whether it would fail in the same way again until somebody changes the configuration or
    /// installs something. `false` for what may pass: too many processes, too many open files, no
    /// memory.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        !matches!(self.reason, Reason::Io | Reason::NoRuntime)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, source) = (&self.program, &self.source);
        match &self.reason {
            Reason::NotFound if program.contains(' ') => {
                write!(f, "program {program:?} not found; arguments go into `args`")
            }
            Reason::NotFound => write!(f, "program {program:?} not found"),
            Reason::NoInterpreter => {
                write!(
                    f,
                    "program {program:?} exists but its interpreter was not found"
                )
            }
            Reason::NotExecutable => write!(f, "program {program:?} is not executable: {source}"),
            Reason::NoDirectory(cwd) => {
                write!(
                    f,
                    "cannot start {program:?}: working directory {cwd:?} not found"
                )
            }
            Reason::Invalid => write!(f, "cannot start {program:?}: {source}"),
            Reason::NoRuntime => {
                write!(f, "cannot start {program:?} outside a tokio runtime")
            }
            Reason::Io => write!(f, "could not start {program:?}: {source}"),
        }
    }
}

impl Error for SpawnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

// === impl Reason ===

impl Reason {
    fn of(spec: &Spec, error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::of_missing(spec),
            // Unix says ENOEXEC for a file that is no program: std has no kind for it.
            ErrorKind::PermissionDenied | ErrorKind::IsADirectory => Self::NotExecutable,
            _ if error.raw_os_error() == Some(8) => Self::NotExecutable,
            ErrorKind::InvalidInput | ErrorKind::ArgumentListTooLong => Self::Invalid,
            _ => Self::Io,
        }
    }

    /// The same code stands for three things: the directory, the program, its interpreter.
    fn of_missing(spec: &Spec) -> Self {
        if let Some(cwd) = spec.cwd()
            && !cwd.is_dir()
        {
            return Self::NoDirectory(cwd.display().to_string());
        }
        let program = Path::new(spec.program());
        let path = spec
            .cwd()
            .map_or_else(|| program.into(), |cwd| cwd.join(program));
        if program.components().count() > 1 && path.is_file() {
            return Self::NoInterpreter;
        }
        Self::NotFound
    }
}
