//! A readiness error, kept for the next call.

use std::{any::Any, fmt};

use steadfast_classify::{Class, Failure};

/// The error with which the inner service refused to become ready.
///
/// Given back from `poll_ready` it would end the caller's loop past the fallback; so it
/// is kept and becomes the result of the next call. Its type is erased, since that
/// depends on a request type the service does not have.
#[derive(Default)]
pub(crate) struct Refusal(Option<Box<dyn Any + Send + Sync>>);

// === impl Refusal ===

impl Refusal {
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) const fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn keep<E: Send + Sync + 'static>(&mut self, error: E) {
        self.0 = Some(Box::new(error));
    }

    /// Takes the error out, if there is one.
    pub(crate) fn take<E: From<Failure> + 'static>(&mut self) -> Option<E> {
        let error = self.0.take()?;
        Some(match error.downcast::<E>() {
            Ok(error) => *error,
            // Made ready as the service of one request type, called as that of another.
            Err(_) => Failure::new(Class::NotSent).with_layer("fallback").into(),
        })
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "kept" } else { "none" })
    }
}
