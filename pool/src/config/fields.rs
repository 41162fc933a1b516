//! Reads one JSON object field by field, and notes whatever does not fit.

use std::time::Duration;

use secrecy::SecretString;

use super::{
    bounds::Bounds,
    error::{Note, Problem},
    expand::{self, Variables},
    json::Json,
    report::Report,
    words::{self, Words},
};

/// The fields of one object. What was not asked for is unknown, so the list of known
/// fields cannot differ from what is read.
pub(crate) struct Fields<'a> {
    entries: Vec<(String, Json)>,
    path: String,
    known: Vec<&'static str>,
    variables: Variables<'a>,
    report: &'a mut Report,
}

const STRING: &str = "a string";
const STRINGS: &str = "an array of strings";
const MAP: &str = "an object of strings";

/// What is read under `steadfast` only, and easily put beside it.
const OURS: &[&str] = &[
    "cacheable",
    "effect",
    "idempotency",
    "limits",
    "long",
    "max_in_flight",
    "shared",
    "tools",
];

// === impl Fields ===

impl<'a> Fields<'a> {
    /// The fields of `json`, at `path`; `None` and an error if it is no object.
    pub(crate) fn new(
        json: Json,
        path: &str,
        variables: Variables<'a>,
        report: &'a mut Report,
    ) -> Option<Self> {
        let Json::Object(entries) = json else {
            report.error(path, Problem::Found(json.kind()), "an object");
            return None;
        };
        let fields = Self {
            entries,
            path: path.to_owned(),
            known: Vec::new(),
            variables,
            report,
        };
        Some(fields)
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Option<String> {
        let json = self.take(field)?;
        let at = self.at(field);
        self.string_at(&at, json)
    }

    /// A string that may have variables in it.
    pub(crate) fn expanded(&mut self, field: &'static str) -> Option<String> {
        let json = self.take(field)?;
        let at = self.at(field);
        self.expanded_at(&at, json)
    }

    pub(crate) fn secret(&mut self, field: &'static str) -> Option<SecretString> {
        self.expanded(field).map(SecretString::from)
    }

    pub(crate) fn texts(&mut self, field: &'static str) -> Option<Vec<String>> {
        self.list(field, Self::string_at)
    }

    pub(crate) fn secrets(&mut self, field: &'static str) -> Vec<SecretString> {
        let secrets = self.list(field, |this, at, json| {
            this.expanded_at(at, json).map(SecretString::from)
        });
        secrets.unwrap_or_default()
    }

    pub(crate) fn secret_map(&mut self, field: &'static str) -> Vec<(String, SecretString)> {
        let mut map = Vec::new();
        for (name, json) in self.entries(field, MAP) {
            let at = format!("{}.{name}", self.at(field));
            if let Some(value) = self.expanded_at(&at, json) {
                map.push((name, value.into()));
            }
        }
        map
    }

    pub(crate) fn boolean(&mut self, field: &'static str) -> Option<bool> {
        let json = self.take(field)?;
        match json {
            Json::Bool(value) => Some(value),
            other => self.wrong(field, Problem::Found(other.kind()), "true or false"),
        }
    }

    /// The one reader of numbers: no strings, fractions, signs or exponents.
    pub(crate) fn whole(&mut self, field: &'static str, bounds: &Bounds) -> Option<u64> {
        let json = self.take(field)?;
        let problem = match json {
            Json::Whole(value) if bounds.hold(value) => return Some(value),
            Json::Whole(_) => Problem::OutOfRange,
            Json::Number => Problem::NotWhole,
            other => Problem::Found(other.kind()),
        };
        self.wrong(field, problem, bounds.allowed())
    }

    pub(crate) fn millis(&mut self, field: &'static str, bounds: &Bounds) -> Option<Duration> {
        self.whole(field, bounds).map(Duration::from_millis)
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        field: &'static str,
        words: Words<T>,
        refused: &str,
    ) -> Option<T> {
        let word = self.text(field)?;
        words::find(&word, words)
            .or_else(|| self.wrong(field, Problem::Unknown, words::list(words, refused)))
    }

    /// The object in `field`, to be read the same way.
    pub(crate) fn child(&mut self, field: &'static str) -> Option<Fields<'_>> {
        let json = self.take(field)?;
        let at = self.at(field);
        Fields::new(json, &at, self.variables, self.report)
    }

    /// Reads each object in the object `field` by `read`.
    pub(crate) fn children<T>(
        &mut self,
        field: &'static str,
        read: impl Fn(Fields<'_>) -> T,
    ) -> Vec<(String, T)> {
        let mut children = Vec::new();
        for (name, json) in self.entries(field, "an object of objects") {
            let at = format!("{}.{name}", self.at(field));
            if let Some(fields) = Fields::new(json, &at, self.variables, self.report) {
                children.push((name, read(fields)));
            }
        }
        children
    }

    pub(crate) fn wrong<T>(
        &mut self,
        field: &str,
        problem: Problem,
        allowed: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Option<T> {
        let at = self.at(field);
        self.report.error(&at, problem, allowed);
        None
    }

    /// Ends an object in which other programs may have fields of their own.
    pub(crate) fn warn_unknown(self) {
        for (name, _) in &self.entries {
            let note = match OURS.contains(&name.as_str()) {
                true => Note::Ours,
                false => Note::Unknown,
            };
            self.report.warn(&self.at(name), note);
        }
    }

    /// Ends an object that is ours alone: a typo in it must not pass silently.
    pub(crate) fn refuse_unknown(self) {
        for (name, _) in &self.entries {
            let allowed = self.known.join(", ");
            self.report.error(&self.at(name), Problem::Unknown, allowed);
        }
    }

    /// Takes the value of `field`; null is the same as absent.
    fn take(&mut self, field: &'static str) -> Option<Json> {
        self.known.push(field);
        let mut taken = None;
        while let Some(index) = self.entries.iter().position(|(name, _)| name == field) {
            let (_, json) = self.entries.remove(index);
            if taken.replace(json).is_some() {
                return self.wrong(field, Problem::Duplicate, "each field once");
            }
        }
        taken.filter(|json| !matches!(json, Json::Null))
    }

    fn at(&self, field: &str) -> String {
        match (self.path.is_empty(), field.is_empty()) {
            (true, _) => field.to_owned(),
            (_, true) => self.path.clone(),
            (false, false) => format!("{}.{field}", self.path),
        }
    }

    fn list<T>(
        &mut self,
        field: &'static str,
        read: impl Fn(&mut Self, &str, Json) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = match self.take(field)? {
            Json::Array(items) => items,
            other => return self.wrong(field, Problem::Found(other.kind()), STRINGS),
        };
        let field = self.at(field);
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            list.extend(read(self, &format!("{field}[{index}]"), item));
        }
        Some(list)
    }

    /// The entries of the object `field`, each name once.
    fn entries(&mut self, field: &'static str, allowed: &'static str) -> Vec<(String, Json)> {
        let entries = match self.take(field) {
            None => return Vec::new(),
            Some(Json::Object(entries)) => entries,
            Some(other) => {
                self.wrong::<()>(field, Problem::Found(other.kind()), allowed);
                return Vec::new();
            }
        };
        let mut once: Vec<(String, Json)> = Vec::with_capacity(entries.len());
        for (name, json) in entries {
            if once.iter().any(|(other, _)| *other == name) {
                let at = format!("{}.{name}", self.at(field));
                self.report.error(&at, Problem::Duplicate, "each name once");
            } else {
                once.push((name, json));
            }
        }
        once
    }

    fn string_at(&mut self, at: &str, json: Json) -> Option<String> {
        if let Json::String(text) = json {
            return Some(text);
        }
        self.report.error(at, Problem::Found(json.kind()), STRING);
        None
    }

    fn expanded_at(&mut self, at: &str, json: Json) -> Option<String> {
        let text = self.string_at(at, json)?;
        expand::expand(&text, self.variables)
            .map_err(|problem| self.report.error(at, problem, expand::ALLOWED))
            .ok()
    }
}
