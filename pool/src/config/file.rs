//! A whole `mcpServers` file.

use std::{env, fs, path::Path, sync::Arc};

use super::{
    error::{ConfigError, ConfigErrors, ConfigWarning, Problem},
    expand::Variables,
    json::Json,
    read::{self, Entry},
    report::Report,
    server::ServerConfig,
};

/// What an `mcpServers` file holds: the servers that can be used, and everything that
/// is wrong with the others.
///
/// One bad server hides no other. Whoever would rather have all or nothing asks
/// [`into_servers`](Self::into_servers).
///
/// # The file
///
/// ```json
/// {
///   "mcpServers": {
///     "files":  { "command": "npx", "args": ["-y", "some-server"], "env": { "TOKEN": "${TOKEN}" } },
///     "search": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${KEY:-none}" },
///                 "steadfast": { "shared": true, "limits": { "read_ms": 30000 },
///                                "tools": { "crawl": { "long": true }, "find": { "effect": "read_only" } } } }
///   }
/// }
/// ```
///
/// - `command` is a program to start; `url` and `httpUrl` are streamable HTTP, `tcp`
///   and a `url` that starts with `ws://` or `wss://` a WebSocket.
/// - `${VAR}` is the value of an environment variable, `${VAR:-default}` has a default
///   for one that is not set or empty, `$${` is a literal `${`. This works in
///   everything that says where a server is and how to log in, nowhere else.
/// - `null` is the same as absent. Fields that are not known here are ignored with a
///   warning, since other programs read the same file; but in `steadfast`, which is
///   ours alone, they are errors.
/// - A server with `"disabled": true` or `"enabled": false` is left out.
/// - `timeout` (milliseconds, 1 to 7 days) is how long a call waits for its answer, and
///   splits sharing; `discoveryTimeoutMs` (100 ms to 300 s) is how long a start takes.
///
/// `steadfast` says what a call may take and repeat. None of it splits sharing.
///
/// | field | value |
/// |---|---|
/// | `shared` | whether sessions share one connection; see [`SharedFamilies`](crate::SharedFamilies) |
/// | `max_in_flight` | calls at once on one connection, 1 to 65535 |
/// | `idempotency` | `off`, `send`, `deduplicated`; see [`IdempotencyPolicy`](crate::IdempotencyPolicy) |
/// | `limits` | `connect_ms`, `read_ms`, `attempt_ms`, `total_ms` (each 1 ms to 7 days), `max_retries` (0 to 100) |
/// | `long`, `effect`, `cacheable` | see [`CallSettings`](crate::CallSettings); `effect` is `read_only`, `idempotent` or `non_idempotent` |
/// | `tools` | by name, `limits`, `long`, `effect`, `cacheable` of one tool, which win over those of the server |
///
/// ```
/// use steadfast_pool::ConfigFile;
///
/// let file = ConfigFile::parse(r#"{"mcpServers": {
///     "files": {"command": "npx", "args": ["-y", "some-server"]},
///     "search": {"url": "example.com/mcp"}
/// }}"#);
/// assert_eq!(&**file.servers()[0].name(), "files");
/// assert_eq!(
///     file.errors()[0].to_string(),
///     "server \"search\": url: has no scheme; allowed: \
///      an address that starts with http://, https://, ws:// or wss://",
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    servers: Vec<ServerConfig>,
    disabled: Vec<Arc<str>>,
    errors: Vec<ConfigError>,
    warnings: Vec<ConfigWarning>,
}

/// What the whole file must look like.
const FILE: &str = "{\"mcpServers\": {\"<name>\": {\"command\" or \"url\": …}}}";

// === impl ConfigFile ===

impl ConfigFile {
    /// Reads a file, with the variables of this process. It blocks for as long as the
    /// file system does.
    pub fn load(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let name: Arc<str> = path.to_string_lossy().into();
        let problem = match fs::read(path).map(String::from_utf8) {
            Ok(Ok(text)) => return Self::read(Some(&name), &text, &of_process),
            Ok(Err(_)) => Problem::NotUtf8,
            Err(error) => Problem::Unreadable(error),
        };
        let mut report = Report::new(Some(&name), None);
        report.error("", problem, FILE);
        Self {
            errors: report.errors,
            ..Self::default()
        }
    }

    /// Reads a text, with the variables of this process.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::read(None, text, &of_process)
    }

    /// Reads a text, with the variables that `variables` knows.
    pub fn parse_with(text: &str, variables: impl Fn(&str) -> Option<String>) -> Self {
        Self::read(None, text, &variables)
    }

    /// The servers that can be used, in the order of the file.
    #[must_use]
    pub fn servers(&self) -> &[ServerConfig] {
        &self.servers
    }

    /// The server of this name, if it can be used.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| &**server.name() == name)
    }

    /// The names of the servers that the file has but switches off.
    #[must_use]
    pub fn disabled(&self) -> &[Arc<str>] {
        &self.disabled
    }

    /// What is wrong: with the whole file, or with servers that are therefore missing
    /// from [`servers`](Self::servers).
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// What has no effect in servers that can be used, and in those that cannot.
    #[must_use]
    pub fn warnings(&self) -> &[ConfigWarning] {
        &self.warnings
    }

    /// All servers, or everything that is wrong.
    ///
    /// # Errors
    ///
    /// [`errors`](Self::errors), if there is one.
    pub fn into_servers(self) -> Result<Vec<ServerConfig>, ConfigErrors> {
        if self.errors.is_empty() {
            Ok(self.servers)
        } else {
            Err(ConfigErrors::new(self.errors))
        }
    }

    fn read(file: Option<&Arc<str>>, text: &str, variables: Variables<'_>) -> Self {
        let mut this = Self::default();
        let mut report = Report::new(file, None);
        let entries = entries(text, &mut report).unwrap_or_default();
        this.errors = report.errors;
        let names: Vec<String> = entries.iter().map(|(name, _)| name.clone()).collect();
        for (index, (name, json)) in entries.into_iter().enumerate() {
            let mut report = Report::new(file, Some(&name));
            let (before, after) = (&names[..index], &names[index + 1..]);
            // Neither of two servers of one name is used: which one is meant is a guess.
            match (before.contains(&name), after.contains(&name)) {
                (true, _) => continue,
                (false, true) => report.error("", Problem::Duplicate, "each name once"),
                (false, false) => this.add(&name, json, variables, &mut report),
            }
            this.errors.append(&mut report.errors);
            this.warnings.append(&mut report.warnings);
        }
        this
    }

    fn add(&mut self, name: &str, json: Json, variables: Variables<'_>, report: &mut Report) {
        match read::entry(name, json, variables, report) {
            Entry::Server(server) => self.servers.push(server),
            Entry::Disabled => self.disabled.push(name.into()),
            Entry::Wrong => {}
        }
    }
}

/// The entries of `mcpServers`. What else the file holds is other programs' business.
fn entries(text: &str, report: &mut Report) -> Option<Vec<(String, Json)>> {
    // Editors on Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut fields = match serde_json::from_str(text) {
        Ok(Json::Object(fields)) => fields,
        Ok(other) => {
            report.error("", Problem::Found(other.kind()), FILE);
            return None;
        }
        Err(error) => {
            report.syntax(error, FILE);
            return None;
        }
    };
    fields.retain(|(name, _)| name == "mcpServers");
    let problem = match (fields.pop(), fields.is_empty()) {
        (Some((_, Json::Object(entries))), true) => return Some(entries),
        (Some((_, Json::Null)), true) => return None,
        (Some((_, other)), true) => Problem::Found(other.kind()),
        (Some(_), false) => Problem::Duplicate,
        (None, _) => Problem::Missing,
    };
    report.error("mcpServers", problem, FILE);
    None
}

fn of_process(name: &str) -> Option<String> {
    env::var(name).ok()
}
