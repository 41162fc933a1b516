//! What may be answered in place of a failure, what may be kept, and how long a store
//! may take: pure functions.

use std::time::Duration;

use steadfast_classify::{Class, Effect, Failure};
use tokio::time::Instant;

/// Whether another answer may be given in place of this failure.
///
/// Not for an error the server answered with and not for a cancel: the caller must see
/// these. A rejection is covered (an open circuit, a used-up budget, a draining pool)
/// unless it is permanent: an excluded tool or a closed session is a decision about
/// this caller, and an old answer would go round it.
#[must_use]
pub fn covers(failure: &Failure) -> bool {
    match failure.class() {
        Class::NotSent | Class::Overloaded | Class::Timeout | Class::Unknown => true,
        Class::Rejected => !failure.is_permanent(),
        // A class that does not exist yet is passed on until somebody decides.
        _ => false,
    }
}

/// What a call means to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its answer may be kept, and an old one given in its place.
    Keep,
    /// It may change what the server would answer: nothing from before it counts.
    Raise,
    /// It changes nothing, and only the present answer is of use.
    Nothing,
}

/// Only the user can say that a call which is not read-only may be answered from the
/// past.
pub(crate) const fn role(effect: Effect, cacheable: Option<bool>) -> Role {
    match (effect, cacheable) {
        (_, Some(true)) | (Effect::ReadOnly, None) => Role::Keep,
        (Effect::ReadOnly, Some(false)) => Role::Nothing,
        (Effect::Idempotent | Effect::NonIdempotent, _) => Role::Raise,
    }
}

/// Until when a store may be waited for. A deadline is a ceiling; `None` is "for ever",
/// for a limit too long to be reached.
pub(crate) fn wait_until(
    now: Instant,
    limit: Duration,
    deadline: Option<Instant>,
) -> Option<Instant> {
    let end = now.checked_add(limit);
    match (end, deadline) {
        (Some(end), Some(deadline)) => Some(end.min(deadline)),
        (end, deadline) => end.or(deadline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_makes_a_write_cacheable() {
        for (effect, cacheable, want) in [
            (Effect::ReadOnly, None, Role::Keep),
            (Effect::ReadOnly, Some(true), Role::Keep),
            (Effect::ReadOnly, Some(false), Role::Nothing),
            (Effect::Idempotent, None, Role::Raise),
            (Effect::Idempotent, Some(true), Role::Keep),
            (Effect::Idempotent, Some(false), Role::Raise),
            (Effect::NonIdempotent, None, Role::Raise),
            (Effect::NonIdempotent, Some(true), Role::Keep),
            (Effect::NonIdempotent, Some(false), Role::Raise),
        ] {
            assert_eq!(role(effect, cacheable), want, "{effect}, {cacheable:?}");
        }
    }

    #[test]
    fn each_class_has_its_answer() {
        for (class, permanent, want) in [
            (Class::NotSent, false, true),
            (Class::NotSent, true, true),
            (Class::Overloaded, false, true),
            (Class::Timeout, false, true),
            (Class::Unknown, false, true),
            (Class::Rejected, false, true),
            (Class::Rejected, true, false),
            (Class::Answered, false, false),
            (Class::Cancelled, false, false),
        ] {
            let mut failure = Failure::new(class);
            if permanent {
                failure = failure.with_permanent();
            }
            assert_eq!(covers(&failure), want, "{class}, permanent: {permanent}");
        }
    }

    #[test]
    fn the_earlier_end_counts() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let sooner = now + Duration::from_millis(999);
        let later = now + Duration::from_millis(1001);

        assert_eq!(wait_until(now, second, None), Some(now + second));
        assert_eq!(wait_until(now, second, Some(sooner)), Some(sooner));
        assert_eq!(wait_until(now, second, Some(later)), Some(now + second));
        assert_eq!(wait_until(now, Duration::MAX, Some(later)), Some(later));
        assert_eq!(wait_until(now, Duration::MAX, None), None);
    }
}
