//! What a response to a handshake means that is no success.

use steadfast_classify::{Class, Failure, Phase};

use crate::HttpRefused;

/// Statuses of the client's fault that may pass by themselves.
const PASSING: &[u16] = &[408, 409, 423, 425];

/// What the failure of a handshake's request means for the connection. Nothing was called
/// by it, so nothing about it is unknown; but who is refused, or told to wait, has to know.
pub(super) fn refused(refusal: Failure) -> Failure {
    let status = refusal
        .find_source::<HttpRefused>()
        .map(HttpRefused::status);
    match (refusal.class(), status) {
        // The same request would be refused again.
        (Class::Answered, Some(401 | 403)) => refusal.with_may_have_run(false).with_permanent(),
        (Class::Answered, Some(status)) if PASSING.contains(&status) => not_sent(refusal),
        (Class::Answered, Some(300..500)) => not_sent(refusal).with_permanent(),
        (Class::Answered, None) => refusal.with_may_have_run(false).with_permanent(),
        (Class::Answered | Class::Unknown | Class::Timeout, _) => not_sent(refusal),
        _ => refusal,
    }
}

fn not_sent(failure: Failure) -> Failure {
    failure
        .with_class(Class::NotSent)
        .with_phase(Phase::Connect)
}
