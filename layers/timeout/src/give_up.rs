//! What is known of an attempt that is given up.

use steadfast_classify::{Class, Flight, Phase, Stage};

/// Takes back an attempt whose limit of this phase ran out, and says what that proves.
/// `called` is whether the inner service was. `None`: it was sent after all, in the last
/// moment, and has its read limit before it.
pub(crate) fn give_up(called: bool, flight: Option<&Flight>, phase: Phase) -> Option<Class> {
    if !called {
        return Some(Class::NotSent);
    }
    let Some(flight) = flight else {
        return Some(Class::Timeout);
    };
    // Where the request was cloned, this is not the only attempt that may be on its way.
    if flight.withdraw() && flight.is_sole() {
        return Some(Class::NotSent);
    }
    let sent = matches!(flight.stage().0, Stage::Sent | Stage::Answered);
    (phase != Phase::Connect || !sent).then_some(Class::Timeout)
}

#[cfg(test)]
mod tests {
    use steadfast_classify::CallContext;

    use super::*;

    const NOT_SENT: Option<Class> = Some(Class::NotSent);
    const TIMEOUT: Option<Class> = Some(Class::Timeout);

    #[test]
    fn what_was_never_called_was_never_sent() {
        for flight in [None, Some(Flight::new())] {
            assert_eq!(give_up(false, flight.as_ref(), Phase::Connect), NOT_SENT);
        }
    }

    #[test]
    fn only_a_withdrawal_of_ones_own_is_a_proof() {
        for (marks, connect, other) in [
            (vec![], TIMEOUT, TIMEOUT),
            (
                vec![Flight::queued as fn(&Flight) -> bool],
                NOT_SENT,
                NOT_SENT,
            ),
            // Sent between the last look and the withdrawal: it has its read limit.
            (vec![Flight::queued, Flight::sending], None, TIMEOUT),
            (vec![Flight::queued, Flight::withdraw], TIMEOUT, TIMEOUT),
        ] {
            for (phase, want) in [
                (Phase::Connect, connect),
                (Phase::Attempt, other),
                (Phase::Total, other),
            ] {
                let flight = Flight::new();
                for mark in &marks {
                    assert!(mark(&flight));
                }

                let got = give_up(true, Some(&flight), phase);

                assert_eq!(got, want, "{phase} {flight:?}");
            }
        }
        assert_eq!(give_up(true, None, Phase::Read), TIMEOUT);
    }

    #[test]
    fn a_flight_of_one_attempt_of_several_is_no_proof() {
        let flight = Flight::new();
        let mut context = CallContext::tracked();
        context.set_flight(flight.clone());
        let _another = context.clone();
        assert!(flight.queued());

        assert_eq!(give_up(true, Some(&flight), Phase::Total), TIMEOUT);
        assert!(!flight.sending(), "taken back it is all the same");
    }
}
