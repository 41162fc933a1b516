//! What may be answered in place of a call that failed.

use std::sync::Arc;

use crate::{Call, Question};

/// What may be answered in place of this call, a `T`, should it fail.
///
/// Everything has a default and the defaults are the safe ones: nothing is kept, nothing
/// is given. For the last good answer two methods are needed, besides an
/// [`effect`](Call::effect) that says the call reads:
///
/// ```
/// use std::sync::Arc;
/// use steadfast_classify::{Call, Caller, Effect, Question, Recoverable};
///
/// struct Forecast { station: Arc<str>, city: &'static str, user: Arc<str> }
///
/// impl Call for Forecast {
///     fn effect(&self) -> Effect { Effect::ReadOnly }
/// }
///
/// impl Recoverable<String> for Forecast {
///     fn server(&self) -> Option<&Arc<str>> { Some(&self.station) }
///
///     fn question(&self) -> Option<Question> {
///         let who = Caller::only(Arc::clone(&self.user));
///         Some(Question::new("forecast", self.city.as_bytes(), who))
///     }
/// }
/// ```
pub trait Recoverable<T>: Call {
    /// Whose state this call reads or changes. Without it nothing is kept, and a write
    /// makes nothing stale. Default: `None`.
    ///
    /// A write and the reads it makes stale must name the same server.
    fn server(&self) -> Option<&Arc<str>> {
        None
    }

    /// What is asked, and who asks. Asked once for each call that may be answered from
    /// the past, and for no other, so a digest may be worked out here. Default: `None`,
    /// its answer is not kept.
    fn question(&self) -> Option<Question> {
        None
    }

    /// Whether an old answer is acceptable; `None` leaves that to the effect, and only a
    /// read-only call is answered from the past. Default: `None`.
    ///
    /// A call that is not read-only and for which this is `Some(true)` does not make
    /// stale what is kept of its server either.
    fn cacheable(&self) -> Option<bool> {
        None
    }

    /// What the caller takes when the call failed and no good answer is kept. Default:
    /// nothing.
    fn default_answer(&self) -> Option<Arc<T>> {
        None
    }
}
