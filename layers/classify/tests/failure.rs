//! What a failure says, to code and to people.

use std::{error::Error, fmt, io, time::Duration};

use steadfast_classify::{Class, Effect, Failure, Origin, Phase};

const ALL: [Class; 7] = [
    Class::NotSent,
    Class::Overloaded,
    Class::Timeout,
    Class::Unknown,
    Class::Answered,
    Class::Rejected,
    Class::Cancelled,
];

#[test]
fn only_proof_or_harmlessness_allows_a_repeat() {
    use Effect::{Idempotent, NonIdempotent, ReadOnly};
    for class in ALL {
        let always = matches!(class, Class::NotSent | Class::Overloaded);
        let harmless = matches!(class, Class::Timeout | Class::Unknown);
        for effect in [ReadOnly, Idempotent, NonIdempotent] {
            let want = always || (harmless && effect != NonIdempotent);
            assert_eq!(class.may_repeat(effect), want, "{class} {effect}");
            assert_eq!(
                Failure::new(class).may_repeat(effect),
                want,
                "{class} {effect}"
            );
        }
    }
}

#[test]
fn a_permanent_failure_and_an_open_circuit_are_never_repeated() {
    let permanent = Failure::new(Class::NotSent).with_permanent();
    assert!(!permanent.may_repeat(Effect::ReadOnly));

    let mut open = Failure::new(Class::NotSent);
    open.mark_circuit_open(Some(Duration::from_secs(3)));
    assert!(!open.may_repeat(Effect::ReadOnly));
    assert_eq!(open.retry_in(), Some(Duration::from_secs(3)));
}

#[test]
fn what_may_have_run_once_stays_so() {
    let mut failure = Failure::new(Class::NotSent);
    assert!(!failure.may_have_run());

    failure.mark_may_have_run();

    assert_eq!(failure.class(), Class::NotSent);
    assert!(failure.may_have_run());
}

#[test]
fn marking_one_copy_leaves_the_others_alone() {
    let shared = Failure::new(Class::NotSent).with_source(io::Error::other("refused"));
    let mut mine = shared.clone();

    mine.set_attempts(3);
    mine.mark_may_have_run();

    assert_eq!(shared.attempts(), 1);
    assert!(!shared.may_have_run());
    assert_eq!(mine.attempts(), 3);
    assert!(mine.find_source::<io::Error>().is_some());
}

#[test]
fn is_one_pointer_wide() {
    assert_eq!(size_of::<Failure>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), Failure>>(), size_of::<usize>());
}

#[test]
fn the_longer_wait_counts() {
    let failure = Failure::new(Class::Overloaded)
        .with_retry_after(Duration::from_secs(2))
        .with_retry_in(Duration::from_secs(5));
    assert_eq!(failure.retry_floor(), Some(Duration::from_secs(5)));
}

#[test]
fn is_one_line_to_act_on() {
    let origin = Origin::server("orders").with_operation("place");
    let timeout = Failure::new(Class::Timeout)
        .with_phase(Phase::Read)
        .with_elapsed(Duration::from_secs(60))
        .with_origin(&origin);
    let missing = Failure::new(Class::NotSent)
        .with_permanent()
        .with_source(io::Error::other("program \"nope\"\nnot\tfound"));
    let mut busy = Failure::new(Class::Overloaded).with_retry_after(Duration::from_secs(2));
    busy.set_attempts(4);
    for (failure, want) in [
        (
            timeout,
            "\"place\" on \"orders\": timed out (read) after 60.0s; \
             it may have run, check before repeating it",
        ),
        (
            missing,
            "call: not sent: program \"nope\" not found; it will fail again until this is changed",
        ),
        (
            busy,
            "call: refused by an overloaded server (4 attempts); the server asks to wait 2s",
        ),
    ] {
        assert_eq!(failure.to_string(), want);
    }
}

#[test]
fn neither_print_shows_the_debug_of_a_foreign_error() {
    struct Secretive;
    impl fmt::Debug for Secretive {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("arguments: hunter2")
        }
    }
    impl fmt::Display for Secretive {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("it broke")
        }
    }
    impl Error for Secretive {}

    let failure = Failure::new(Class::Unknown).with_source(Secretive);

    for printed in [
        failure.to_string(),
        format!("{failure:?}"),
        format!("{failure:#?}"),
    ] {
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(printed.contains("it broke"), "{printed}");
    }
}

#[test]
fn an_origin_fills_only_what_is_missing() {
    let failure = Failure::new(Class::Unknown)
        .with_origin(&Origin::server("inner"))
        .with_origin(&Origin::server("outer").with_operation("place"));

    assert_eq!(failure.origin().server.as_deref(), Some("inner"));
    assert_eq!(failure.origin().operation.as_deref(), Some("place"));
}

#[test]
fn a_source_is_found_however_deep() {
    #[derive(Debug)]
    struct Wrapper(io::Error);
    impl fmt::Display for Wrapper {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("wrapped")
        }
    }
    impl Error for Wrapper {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    let failure = Failure::new(Class::Unknown).with_source(Wrapper(io::Error::other("deep")));

    assert!(failure.find_source::<Wrapper>().is_some());
    assert_eq!(
        failure.find_source::<io::Error>().map(ToString::to_string),
        Some("deep".to_owned())
    );
}
