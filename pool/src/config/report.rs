//! What was found wrong so far, and where we are.

use std::{borrow::Cow, sync::Arc};

use super::error::{ConfigError, ConfigWarning, Note, Place, Problem};

/// Collects what is wrong with one server, so that all of it can be shown at once.
#[derive(Default)]
pub(crate) struct Report {
    place: Place,
    pub(crate) errors: Vec<ConfigError>,
    pub(crate) warnings: Vec<ConfigWarning>,
}

// === impl Report ===

impl Report {
    pub(crate) fn new(file: Option<&Arc<str>>, server: Option<&str>) -> Self {
        let place = Place {
            file: file.cloned(),
            server: server.map(Arc::from),
            ..Place::default()
        };
        Self {
            place,
            ..Self::default()
        }
    }

    /// Records an error at `field`; an empty `field` is the whole.
    pub(crate) fn error(
        &mut self,
        field: &str,
        problem: Problem,
        allowed: impl Into<Cow<'static, str>>,
    ) {
        let place = self.at(field);
        self.errors
            .push(ConfigError::new(place, problem, allowed.into()));
    }

    /// Records where the text stops being JSON.
    pub(crate) fn syntax(&mut self, error: serde_json::Error, allowed: &'static str) {
        let place = Place {
            position: Some((error.line(), error.column())),
            ..self.place.clone()
        };
        let problem = Problem::Syntax(error);
        self.errors
            .push(ConfigError::new(place, problem, allowed.into()));
    }

    pub(crate) fn warn(&mut self, field: &str, note: Note) {
        let place = self.at(field);
        self.warnings.push(ConfigWarning::new(place, note));
    }

    fn at(&self, field: &str) -> Place {
        Place {
            field: (!field.is_empty()).then(|| field.into()),
            ..self.place.clone()
        }
    }
}
