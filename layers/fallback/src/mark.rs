//! How an answer carries its source.

use steadfast_classify::{Cause, Source, Tag};

/// How answers of type `T` carry their source in themselves, and which of them are
/// errors: what [`Tag`] says of a type, said from outside, for types that are somebody
/// else's.
pub trait Mark<T> {
    /// Writes the source into the answer.
    fn tag(&self, value: &mut T, source: &Source, cause: Option<&Cause>);

    /// An answer that says that nothing better is to be had, if there is one.
    fn unavailable(&self, cause: &Cause) -> Option<T>;

    /// Whether the answer reports an error of the operation itself: such a one is passed
    /// on and never kept.
    fn is_error(&self, value: &T) -> bool;
}

/// The type's own [`Tag`] decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tagged;

/// The answer stays as it is, none means an error, and none says "unavailable". The
/// source is in the [`Sourced`](crate::Sourced) around it all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untagged;

// === impl Mark ===

impl<T: Tag> Mark<T> for Tagged {
    fn tag(&self, value: &mut T, source: &Source, cause: Option<&Cause>) {
        value.tag(source, cause);
    }

    fn unavailable(&self, cause: &Cause) -> Option<T> {
        T::unavailable(cause)
    }

    fn is_error(&self, value: &T) -> bool {
        value.is_error()
    }
}

impl<T> Mark<T> for Untagged {
    fn tag(&self, _value: &mut T, _source: &Source, _cause: Option<&Cause>) {}

    fn unavailable(&self, _cause: &Cause) -> Option<T> {
        None
    }

    fn is_error(&self, _value: &T) -> bool {
        false
    }
}
