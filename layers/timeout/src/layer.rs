//! The layer that limits the time of an attempt.

use tower_layer::Layer;

use crate::{InvalidSettings, Settings, Timeout};

/// Limits how long each attempt may take, phase by phase. See [`Timeout`].
///
/// It belongs under every layer that repeats a call, so that each attempt has limits
/// and a proof of delivery of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeoutLayer {
    settings: Settings,
}

// === impl TimeoutLayer ===

impl TimeoutLayer {
    /// A layer that keeps these limits; [`Default`] keeps the default ones.
    ///
    /// # Errors
    ///
    /// A limit of zero, or one above the limit of the whole attempt.
    pub fn new(settings: Settings) -> Result<Self, InvalidSettings> {
        settings.checked().map(|settings| Self { settings })
    }

    /// The limits of an attempt that brings none along.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout::with_checked(inner, self.settings)
    }
}
