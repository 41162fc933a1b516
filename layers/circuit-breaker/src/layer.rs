//! The layer that breaks circuits.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use tower_layer::Layer;

use crate::{Breaker, CircuitBreaker, InvalidSettings, Keyed, Settings, Single, Snapshot};

/// Turns calls away from a server that is down, until a probe has found it up again. See
/// the [crate](crate).
///
/// All services that a layer and its clones make share its circuits, so it does not matter
/// how often, and where, the layer is applied.
///
/// ```
/// # use steadfast_circuit_breaker::{CircuitBreakerLayer, InvalidSettings, Settings};
/// # struct ToolCall { server: String }
/// let one_server = CircuitBreakerLayer::new("github", Settings::new())?;
/// let many = CircuitBreakerLayer::keyed("tools", Settings::new(), |call: &ToolCall| {
///     call.server.clone()
/// })?;
/// # Ok::<_, InvalidSettings>(())
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreakerLayer<Sel = Single> {
    select: Sel,
}

// === impl CircuitBreakerLayer ===

impl CircuitBreakerLayer {
    /// A layer with one circuit of this name.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error says which one, and what is allowed.
    pub fn new(name: impl Into<Arc<str>>, settings: Settings) -> Result<Self, InvalidSettings> {
        Breaker::new(name, settings).map(Self::from_breaker)
    }

    /// A layer with this circuit, which may be shared with other layers.
    #[must_use]
    pub fn from_breaker(breaker: Breaker) -> Self {
        Self {
            select: Single::new(breaker),
        }
    }

    /// The handle of its circuit.
    #[must_use]
    pub fn breaker(&self) -> &Breaker {
        self.select.breaker()
    }
}

impl<K, F> CircuitBreakerLayer<Keyed<K, F>> {
    /// A layer with a circuit for each key that `key` finds in a request. The key should be
    /// cheap to make, to clone and to compare, such as an `Arc<str>` or a tuple of them; its
    /// `Debug` is what rejections and logs call the circuit by.
    ///
    /// # Errors
    ///
    /// If a setting makes no sense; the error says which one, and what is allowed.
    pub fn keyed<R>(
        name: impl Into<Arc<str>>,
        settings: Settings,
        key: F,
    ) -> Result<Self, InvalidSettings>
    where
        F: Fn(&R) -> K,
        K: Eq + Hash + Clone + Debug,
    {
        settings.check()?;
        Ok(Self {
            select: Keyed::new(name.into(), settings, key),
        })
    }

    /// What all its circuits look like now, in no order.
    #[must_use]
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.select.snapshots()
    }
}

impl<K: Eq + Hash + Clone + Debug, F> CircuitBreakerLayer<Keyed<K, F>> {
    /// The handle of this key's circuit, which is made if there is none. It is not evicted
    /// as long as there is a handle of it. `None` if there is no room for it.
    #[must_use]
    pub fn breaker(&self, key: &K) -> Option<Breaker> {
        self.select.breaker(key)
    }

    /// What this key's circuit looks like now, if it has one.
    #[must_use]
    pub fn snapshot(&self, key: &K) -> Option<Snapshot> {
        self.select.snapshot(key)
    }
}

impl<Sel> CircuitBreakerLayer<Option<Sel>> {
    /// A layer that may be switched off, without another type of service for that: `None`
    /// passes every call on.
    #[must_use]
    pub fn optional(layer: Option<CircuitBreakerLayer<Sel>>) -> Self {
        Self {
            select: layer.map(|layer| layer.select),
        }
    }
}

impl<S, Sel: Clone> Layer<S> for CircuitBreakerLayer<Sel> {
    type Service = CircuitBreaker<S, Sel>;

    fn layer(&self, inner: S) -> Self::Service {
        CircuitBreaker::new(inner, self.clone())
    }
}

impl<Sel> CircuitBreakerLayer<Sel> {
    pub(crate) fn into_select(self) -> Sel {
        self.select
    }
}
