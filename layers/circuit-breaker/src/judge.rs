//! What the end of a call says about the server.

use std::time::Duration;

use steadfast_classify::{Class, Effect, Failure, Phase};

/// What the end of a call says about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is alive.
    Success,
    /// It is not, or cannot be reached.
    Failure,
    /// It is alive and refuses work: no reason to open, but none to close either.
    Busy,
    /// Nothing.
    Neutral,
}

/// A call that was ended by its own deadline says nothing about the server unless it ran
/// for this long: one caller's tiny deadline must not open the circuit for all.
const FAIR_CHANCE: Duration = Duration::from_secs(1);

/// Judges a failed call that ran for `ran`; `None` is an error that is no [`Failure`].
pub(crate) fn judge(failure: Option<&Failure>, ran: Duration, count_answered: bool) -> Verdict {
    let Some(failure) = failure else {
        return Verdict::Failure;
    };
    let unfair = match failure.phase() {
        Some(Phase::Total) => ran < FAIR_CHANCE,
        // It waited for us, not for the server; or all that was wrong was its session.
        Some(Phase::Held | Phase::Session) => true,
        _ => false,
    };
    match failure.class() {
        Class::NotSent if failure.is_permanent() || unfair => Verdict::Neutral,
        Class::Timeout if unfair => Verdict::Neutral,
        Class::Overloaded => Verdict::Busy,
        Class::Answered if !count_answered => Verdict::Success,
        Class::Rejected | Class::Cancelled => Verdict::Neutral,
        // `NotSent`, `Timeout`, `Unknown`, and what is not known here.
        _ => Verdict::Failure,
    }
}

/// Whether somebody might repeat a call that ended so, and should be told not to.
pub(crate) fn is_worth_marking(failure: &Failure) -> bool {
    !failure.is_permanent() && failure.class().may_repeat(Effect::ReadOnly)
}
