use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

/// What to start: a program, its arguments, its whole environment and where it runs.
///
/// The environment is complete: nothing is inherited that is not in it
/// ([`InheritedEnv`](super::InheritedEnv) gives what a server needs). `Debug` shows neither
/// arguments nor values, since both carry tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Spec {
    program: OsString,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    cwd: Option<PathBuf>,
}

// === impl Spec ===

impl Spec {
    /// Starts `program`, found over the `PATH` of its own environment unless it has a slash.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// Replaces the arguments.
    #[must_use]
    pub fn with_args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Replaces the whole environment.
    #[must_use]
    pub fn with_env(mut self, env: BTreeMap<OsString, OsString>) -> Self {
        self.env = env;
        self
    }

    /// Sets the working directory; without it the host's own is used.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// The program, as it was given.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The working directory, if one was given.
    #[must_use]
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    pub(super) fn env(&self) -> &BTreeMap<OsString, OsString> {
        &self.env
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_argument_and_no_value() {
        let spec = Spec::new("server")
            .with_args(["--token", "s3cret-arg"])
            .with_env([("TOKEN".into(), "s3cret-env".into())].into())
            .with_cwd("/srv");

        let shown = format!("{spec:?}");

        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("TOKEN") && shown.contains("/srv"), "{shown}");
    }
}
