//! The layer that classifies.

use tower_layer::Layer;

use crate::ClassifyService;

/// Turns the results of a service into successes and [`Failure`](crate::Failure)s.
///
/// It belongs next to the service, under every layer that acts on a class.
#[derive(Clone, Copy, Debug)]
pub struct ClassifyLayer<C> {
    classify: C,
}

// === impl ClassifyLayer ===

impl<C> ClassifyLayer<C> {
    /// A layer that judges each result by `classify`: a closure or a
    /// [`Classify`](crate::Classify).
    #[must_use]
    pub const fn new(classify: C) -> Self {
        Self { classify }
    }
}

impl<S, C: Clone> Layer<S> for ClassifyLayer<C> {
    type Service = ClassifyService<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        ClassifyService::new(inner, self.classify.clone())
    }
}
