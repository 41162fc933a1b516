//! Where each limit begins, where it ends, and which one is named.

use std::{future::pending, time::Duration};

use steadfast_classify::{Class, Failure, Limits, Phase};
use steadfast_timeout::{Elapsed, Settings, long_task};
use tokio::time::sleep;
use tower::{Service, ServiceExt, service_fn};

use crate::wire::{Ping, Req, Script, ms, outcome, timeout};

const SETTINGS: Settings = Settings::new().with_connect(ms(500)).with_read(ms(2_000));

#[tokio::test(start_paused = true)]
async fn an_answer_within_every_limit_passes() {
    let script = Script {
        sent: Some(499),
        answer: Some(2_498),
        ..Script::default()
    };

    let (result, at) = outcome(SETTINGS, script, Req::tracked()).await;

    assert_eq!((result, at), (Ok("pong"), 2_498));
}

#[tokio::test(start_paused = true)]
async fn connect_runs_from_the_call_until_it_was_sent() {
    for (sent, want) in [
        (Some(499), (Err((Class::Timeout, Phase::Read)), 2_499)),
        (Some(501), (Err((Class::NotSent, Phase::Connect)), 500)),
        (None, (Err((Class::NotSent, Phase::Connect)), 500)),
    ] {
        let script = Script {
            sent,
            ..Script::default()
        };

        let got = outcome(SETTINGS, script, Req::tracked()).await;

        assert_eq!(got, want, "sent at {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn read_runs_from_sent_to_the_answer() {
    for (answer, want) in [
        (2_099, (Ok("pong"), 2_099)),
        (2_101, (Err((Class::Timeout, Phase::Read)), 2_100)),
    ] {
        let script = Script {
            sent: Some(100),
            answer: Some(answer),
            ..Script::default()
        };

        let got = outcome(SETTINGS, script, Req::tracked()).await;

        assert_eq!(got, want, "answered at {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_limit_below_the_connect_limit_is_exact_too() {
    let settings = Settings::new().with_connect(ms(5_000)).with_read(ms(300));
    for sent in [0, 1, 299, 300, 301, 777, 4_999] {
        let script = Script {
            sent: Some(sent),
            ..Script::default()
        };

        let got = outcome(settings, script, Req::tracked()).await;

        let want = (Err((Class::Timeout, Phase::Read)), sent + 300);
        assert_eq!(got, want, "sent at {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn read_runs_from_the_call_where_the_wire_marks_nothing() {
    for request in [Req::tracked(), Req::default()] {
        let script = Script {
            ignores_flights: true,
            sent: Some(700),
            answer: Some(2_001),
            ..Script::default()
        };

        let got = outcome(SETTINGS, script, request).await;

        assert_eq!(got, (Err((Class::Timeout, Phase::Read)), 2_000));
    }
}

#[tokio::test(start_paused = true)]
async fn read_runs_from_the_call_of_the_inner_service_where_that_was_not_ready() {
    let inner = crate::contract::ready_after(ms(400), pending::<Result<(), Failure>>);

    let failure = timeout(inner, SETTINGS)
        .oneshot(Ping("late"))
        .await
        .unwrap_err();

    assert_eq!(failure.phase(), Some(Phase::Read));
    assert_eq!(failure.elapsed(), Some(ms(2_400)));
}

#[tokio::test(start_paused = true)]
async fn attempt_ends_a_call_whatever_it_reports() {
    let settings = SETTINGS.with_attempt(ms(3_000));
    let progress = (1..100).map(|n| n * 100).collect();
    for (sent, class) in [(Some(0), Class::Timeout), (None, Class::NotSent)] {
        let script = Script {
            starting: Some(60_000),
            sent,
            progress: Clone::clone(&progress),
            ..Script::default()
        };

        let got = outcome(settings, script, Req::tracked()).await;

        assert_eq!(got, (Err((class, Phase::Attempt)), 3_000), "sent {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_ends_an_attempt() {
    for (sent, class) in [(Some(0), Class::Timeout), (None, Class::NotSent)] {
        let script = Script {
            sent,
            ..Script::default()
        };
        let request = Req::tracked().with_deadline(ms(499));

        let got = outcome(SETTINGS, script, request).await;

        assert_eq!(got, (Err((class, Phase::Total)), 499), "sent {sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_past_its_deadline_is_not_begun() {
    let mut service = timeout(
        service_fn(|_: Req| async { panic!("called") as Result<(), Failure> }),
        SETTINGS,
    );
    let request = Req::tracked().with_deadline(Duration::ZERO);

    let failure = service.call(request).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert_eq!(failure.phase(), Some(Phase::Total));
}

#[tokio::test(start_paused = true)]
async fn of_limits_at_the_same_moment_the_one_that_says_most_is_named() {
    let settings = SETTINGS.with_attempt(ms(2_000));
    for (sent, want) in [(0, Phase::Read), (100, Phase::Total)] {
        let script = Script {
            sent: Some(sent),
            ..Script::default()
        };
        let request = Req::tracked().with_deadline(ms(2_000));

        let got = outcome(settings, script, request).await;

        assert_eq!(got, (Err((Class::Timeout, want)), 2_000), "sent at {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_ready_at_the_deadline_wins() {
    let service = service_fn(|_: Ping| async {
        sleep(ms(2_000)).await;
        Ok::<_, Failure>("just in time")
    });

    let answer = timeout(service, SETTINGS).oneshot(Ping("late")).await;

    assert_eq!(answer.unwrap(), "just in time");
}

#[tokio::test(start_paused = true)]
async fn limits_of_the_call_replace_those_of_the_layer() {
    let silent = Script::default;
    let sent = || Script {
        sent: Some(0),
        ..Script::default()
    };
    for (script, limits, want) in [
        (
            silent(),
            Limits::new().with_connect(ms(50)),
            (Phase::Connect, 50),
        ),
        (
            silent(),
            Limits::new().with_connect(ms(900)),
            (Phase::Connect, 900),
        ),
        (sent(), Limits::new().with_read(ms(70)), (Phase::Read, 70)),
        (
            sent(),
            Limits::new().with_read(ms(9_000)),
            (Phase::Read, 9_000),
        ),
        (
            sent(),
            Limits::new().with_attempt(ms(60)),
            (Phase::Attempt, 60),
        ),
    ] {
        let request = Req::tracked().with_limits(limits.clone());

        let (result, at) = outcome(SETTINGS, script, request).await;

        let phase = result.unwrap_err().1;
        assert_eq!((phase, at), want, "{limits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_leaves_a_call_what_is_ready_at_once() {
    let at_once = service_fn(|_: Req| async { Ok::<_, Failure>("pong") });
    let zero = || Limits::new().with_connect(ms(0)).with_read(ms(0));
    let request = || Req::tracked().with_limits(zero());

    assert!(timeout(at_once, SETTINGS).oneshot(request()).await.is_ok());

    for (ignores_flights, want) in [
        (false, (Class::NotSent, Phase::Connect)),
        (true, (Class::Timeout, Phase::Read)),
    ] {
        let script = Script {
            ignores_flights,
            ..Script::default()
        };
        let got = outcome(SETTINGS, script, request()).await;
        assert_eq!(got, (Err(want), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_limit_of_zero_does_not_spin_while_connecting() {
    let request = Req::tracked().with_limits(Limits::new().with_read(ms(0)));
    let script = Script {
        sent: Some(321),
        ..Script::default()
    };

    let (result, at) = outcome(SETTINGS, script, request).await;

    assert_eq!(result, Err((Class::Timeout, Phase::Read)));
    assert!(
        (321..=322).contains(&at),
        "within a tick of the timer: {at}"
    );
}

#[tokio::test(start_paused = true)]
async fn absurd_limits_never_come_and_never_overflow() {
    let century = Duration::from_secs(100 * 365 * 86_400);
    for limit in [Duration::MAX, century] {
        let settings = Settings::new().with_connect(limit).with_read(limit);
        let script = Script {
            starting: Some(u64::MAX),
            sent: Some(86_400_000),
            progress: vec![2 * 86_400_000],
            answer: Some(3 * 86_400_000),
            ..Script::default()
        };

        let got = outcome(settings, script, Req::tracked()).await;

        assert_eq!(got, (Ok("pong"), 3 * 86_400_000), "{limit:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_says_which_limit_ran_out() {
    let service = service_fn(|_: Ping| pending::<Result<(), Failure>>());

    let failure = timeout(service, SETTINGS)
        .oneshot(Ping("secret"))
        .await
        .unwrap_err();

    let elapsed = failure.find_source::<Elapsed>().unwrap();
    assert_eq!(elapsed.phase(), Phase::Read);
    assert_eq!(elapsed.limit(), ms(2_000));
    assert!(failure.may_have_run());
    assert_eq!(
        failure.to_string(),
        "call: timed out (read) after 2.0s: its read limit of 2s passed; \
         it may have run, check before repeating it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_task_lives_as_long_as_it_shows_life() {
    let settings = Settings::new().with_attempt(ms(90_000));
    let hour = ms(3_600_000);
    let request = || Req::tracked().with_limits(long_task(hour));
    let mut script = Script {
        sent: Some(10),
        progress: (1..60).map(|n| n * 59_000).collect(),
        answer: Some(3_500_000),
        ..Script::default()
    };

    let got = outcome(settings, script.clone(), request()).await;
    assert_eq!(got, (Ok("pong"), 3_500_000));

    script.progress.truncate(10);
    let got = outcome(settings, script, request()).await;
    assert_eq!(got, (Err((Class::Timeout, Phase::Read)), 650_000));
    assert_eq!(long_task(hour).max_retries, Some(0));
    assert_eq!(long_task(ms(7)).read, Some(ms(7)));
}
