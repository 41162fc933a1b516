//! Finding the failure in somebody's error, and making one.

use std::error::Error;

use crate::Failure;

/// The error type of tower's own middleware.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// An error in which a [`Failure`] may be found.
///
/// A layer that has to know what happened asks for it here, so that one stack serves
/// [`Failure`] itself, [`BoxError`] and an application's own error alike. An error in
/// which none is found is foreign: nobody can tell whether the call ran
/// ([`Class::Unknown`](crate::Class::Unknown)).
///
/// An application's own error needs one method (and `From<Failure>`):
///
/// ```
/// # use steadfast_classify::{Classified, Failure};
/// #[derive(Debug, thiserror::Error)]
/// enum AppError {
///     #[error(transparent)]
///     Tool(#[from] Failure),
///     #[error("no such order")]
///     NoSuchOrder,
/// }
///
/// impl Classified for AppError {
///     fn failure(&self) -> Option<&Failure> {
///         match self {
///             Self::Tool(failure) => Some(failure),
///             Self::NoSuchOrder => None,
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "no failure can be looked for in `{Self}`",
    note = "use `Failure`, `tower::BoxError`, or implement `Classified` and `From<Failure>`",
    note = "`ClassifyLayer` turns any other error into a `Failure`"
)]
pub trait Classified {
    /// The failure in this error, if there is one.
    fn failure(&self) -> Option<&Failure>;

    /// The same, for layers that add what they know (how many attempts there were,
    /// that the circuit is open). Default: `None`, which loses only those notes.
    fn failure_mut(&mut self) -> Option<&mut Failure> {
        None
    }
}

/// Decides what the result of one attempt means. Implemented for every
/// `Fn(Result<Res, E>) -> Result<T, Failure>`.
///
/// An `Ok` may become a failure too (an HTTP 503 is one), and an error hidden in it
/// should then stay available as the failure's source.
pub trait Classify<Res, E> {
    /// What a success turns into.
    type Response;

    /// Decides.
    ///
    /// # Errors
    ///
    /// The failure that this result means.
    fn classify(&self, result: Result<Res, E>) -> Result<Self::Response, Failure>;
}

// === impl Classified ===

impl Classified for Failure {
    fn failure(&self) -> Option<&Failure> {
        Some(self)
    }

    fn failure_mut(&mut self) -> Option<&mut Failure> {
        Some(self)
    }
}

impl Classified for BoxError {
    /// Walks [`Error::source`] from this error down to the first [`Failure`].
    fn failure(&self) -> Option<&Failure> {
        let mut error: &(dyn Error + 'static) = &**self;
        loop {
            if let Some(failure) = error.downcast_ref::<Failure>() {
                return Some(failure);
            }
            error = error.source()?;
        }
    }

    /// Only a failure that is not wrapped in another error can be changed.
    fn failure_mut(&mut self) -> Option<&mut Failure> {
        self.downcast_mut::<Failure>()
    }
}

// === impl Classify ===

impl<F, Res, E, T> Classify<Res, E> for F
where
    F: Fn(Result<Res, E>) -> Result<T, Failure>,
{
    type Response = T;

    fn classify(&self, result: Result<Res, E>) -> Result<T, Failure> {
        self(result)
    }
}
