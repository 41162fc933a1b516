use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
};

/// What a server needs to find its home, its programs, its caches and its language, and no more.
/// Proxy variables stay out, since their URLs carry credentials; name them where they are wanted.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TZ",
    "LANG",
    "LANGUAGE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // macOS
    "__CF_USER_TEXT_ENCODING",
    // Windows
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

const PREFIXES: &[&str] = &["LC_"];

/// The part of the host's environment that its servers inherit: an allow-list, captured once.
///
/// Everything else of the host (its API keys) stays with the host, unless the configuration of a
/// server names it. Captured once, so that a server that is started again starts the same.
///
/// Inherited are `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR`, `TMP`, `TEMP`, `TZ`,
/// `LANG`, `LANGUAGE`, `LC_*`, the XDG base directories, `SSL_CERT_FILE`, `SSL_CERT_DIR` and their
/// like on macOS and Windows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct InheritedEnv(BTreeMap<OsString, OsString>);

// === impl InheritedEnv ===

impl InheritedEnv {
    /// Takes the allowed variables out of the environment of this process.
    #[must_use]
    pub fn capture() -> Self {
        Self::from_vars(std::env::vars_os())
    }

    /// Takes the allowed variables out of `vars`.
    #[must_use]
    pub fn from_vars(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let allowed = |name: &OsStr, value: &OsStr| {
            // A shell reads a value that begins like this as the definition of a function.
            is_allowed(name, cfg!(windows)) && !value.as_encoded_bytes().starts_with(b"()")
        };
        Self(
            vars.into_iter()
                .filter(|(name, value)| allowed(name, value))
                .collect(),
        )
    }

    /// The whole environment of one server: what is inherited, and over it what is `configured`.
    #[must_use]
    pub fn with(
        &self,
        configured: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut env = self.0.clone();
        for (name, value) in configured {
            if cfg!(windows) {
                env.retain(|other, _| !other.eq_ignore_ascii_case(&name));
            }
            env.insert(name, value);
        }
        env
    }
}

impl fmt::Debug for InheritedEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Windows does not tell `Path` from `PATH`.
fn is_allowed(name: &OsStr, ignore_case: bool) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = if ignore_case {
        &name.to_ascii_uppercase()
    } else {
        name
    };
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> InheritedEnv {
        InheritedEnv::from_vars(
            [
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("CANARY_API_KEY", "s3cret"),
                ("HTTPS_PROXY", "http://user:s3cret@proxy"),
                ("SHELL", "() { :; }; evil"),
                ("MY_PATH", "no"),
            ]
            .map(|(name, value)| (name.into(), value.into())),
        )
    }

    #[test]
    fn k09_only_what_is_allowed_or_configured_is_inherited() {
        let env = host().with([("CANARY_API_KEY".into(), "given".into())]);

        let want = [
            ("CANARY_API_KEY", "given"),
            ("LC_ALL", "C"),
            ("PATH", "/bin"),
        ]
        .map(|(name, value)| (name.into(), value.into()));
        assert_eq!(env, want.into());
        assert_eq!(host().with([]).len(), 2);
    }

    #[test]
    fn what_is_configured_wins_over_what_is_inherited() {
        let env = host().with([("PATH".into(), "/opt/bin".into())]);

        assert_eq!(env[OsStr::new("PATH")], "/opt/bin");
    }

    #[test]
    fn names_are_compared_without_case_only_where_the_system_does() {
        for (name, ignore_case, want) in [
            ("PATH", false, true),
            ("Path", false, false),
            ("Path", true, true),
            ("lc_ctype", true, true),
            ("ProgramFiles(x86)", true, true),
            ("OPENAI_API_KEY", true, false),
        ] {
            assert_eq!(
                is_allowed(OsStr::new(name), ignore_case),
                want,
                "{name} {ignore_case}"
            );
        }
    }

    #[test]
    fn debug_shows_names_only() {
        assert_eq!(format!("{:?}", host()), r#"{"LC_ALL", "PATH"}"#);
    }
}
