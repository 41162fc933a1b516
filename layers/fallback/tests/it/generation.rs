//! What is kept, for whom, and until when.

use std::time::Duration;

use steadfast_classify::{Class, Effect, Failure, Source};
use steadfast_fallback::{Caller, FallbackLayer, Settings, Store as _};
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready};
use tower_test::mock;

use crate::support::{Ask, ask, call, chain, down, next, page, seconds, standard};

#[tokio::test(start_paused = true)]
async fn a_good_answer_is_given_for_the_same_question_only() {
    let kept = Ask::read("a");
    for (other, what) in [
        (Ask::read("b"), "other arguments"),
        (Ask::read("a").by("bob"), "another caller"),
        (Ask::read("a").at("archive"), "another server"),
        (
            Ask {
                operation: "list",
                ..Ask::read("a")
            },
            "another operation",
        ),
        (
            Ask {
                caller: Caller::Anyone,
                ..Ask::read("a")
            },
            "nobody in particular",
        ),
        (Ask::read("a").by(""), "a caller without a name"),
    ] {
        let (script, mut service) = standard();
        script
            .answers(Ok(page("good")))
            .answers(Err(down()))
            .answers(Err(down()));
        ask(&mut service, kept.clone()).await.unwrap();

        let given = ask(&mut service, other).await.unwrap();
        let same = ask(&mut service, kept.clone()).await.unwrap();

        assert_eq!(given.source, Source::Degraded, "{what}");
        assert_eq!(same.value.text, "good", "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_is_given_what_is_for_anyone() {
    let (script, mut service) = standard();
    script.answers(Ok(page("good"))).answers(Err(down()));
    let anyone = Ask {
        caller: Caller::Anyone,
        ..Ask::read("a")
    };

    ask(&mut service, anyone.clone()).await.unwrap();
    let given = ask(&mut service, anyone).await.unwrap();

    assert_eq!(given.value.text, "good");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_write_is_kept_where_the_user_says_so() {
    for effect in [Effect::Idempotent, Effect::NonIdempotent] {
        let write = Ask {
            effect,
            ..Ask::read("a")
        };
        for (request, want) in [
            (write.clone(), "unavailable: not_sent"),
            (write.cacheable(), "good"),
        ] {
            let (script, mut service) = standard();
            script.answers(Ok(page("good"))).answers(Err(down()));

            ask(&mut service, request.clone()).await.unwrap();
            let answer = ask(&mut service, request).await.unwrap();

            assert_eq!(answer.value.text, want, "{effect}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_old_answers_are_of_no_use_is_not_kept_and_makes_nothing_stale() {
    let (script, mut service) = standard();
    let never = Ask {
        cacheable: Some(false),
        ..Ask::read("b")
    };
    script
        .answers(Ok(page("good")))
        .answers(Ok(page("of no use")))
        .answers(Err(down()))
        .answers(Err(down()));
    ask(&mut service, Ask::read("a")).await.unwrap();
    ask(&mut service, never.clone()).await.unwrap();

    let unkept = ask(&mut service, never).await.unwrap();
    let kept = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(unkept.source, Source::Degraded);
    assert_eq!(kept.value.text, "good");
}

#[tokio::test(start_paused = true)]
async fn without_a_server_or_a_question_nothing_is_kept() {
    let nowhere = Ask {
        server: None,
        ..Ask::read("a")
    };
    let nothing = Ask {
        asks: false,
        ..Ask::read("a")
    };
    for request in [nowhere, nothing] {
        let (script, mut service) = standard();
        script.answers(Ok(page("good"))).answers(Err(down()));

        ask(&mut service, request.clone()).await.unwrap();
        let answer = ask(&mut service, request.clone()).await.unwrap();

        assert_eq!(answer.source, Source::Degraded, "{request:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_ends_what_was_read_before_it_unless_it_did_not_run() {
    for (ended, stale) in [
        (Ok(page("stored")), true),
        (Err(Failure::new(Class::Timeout)), true),
        (Err(Failure::new(Class::Unknown)), true),
        (Err(Failure::new(Class::Answered)), true),
        (Err(Failure::new(Class::Cancelled)), true),
        (Err(Failure::new(Class::NotSent)), false),
        (Err(Failure::new(Class::Overloaded)), false),
        (Err(Failure::new(Class::Rejected)), false),
        (Err(Failure::new(Class::Rejected).with_permanent()), false),
        // An earlier attempt of the same call may have.
        (
            Err(Failure::new(Class::NotSent).with_may_have_run(true)),
            true,
        ),
    ] {
        let (script, mut service) = standard();
        let what = format!("{ended:?}");
        script
            .answers(Ok(page("good")))
            .answers(ended)
            .answers(Err(down()));
        ask(&mut service, Ask::read("a")).await.unwrap();

        // The caller sees a failure that is passed on; here only the store matters.
        let _ = ask(&mut service, Ask::write()).await;

        let answer = ask(&mut service, Ask::read("a")).await.unwrap();
        assert_eq!(answer.source == Source::Degraded, stale, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_cacheable_makes_nothing_stale() {
    let (script, mut service) = standard();
    script
        .answers(Ok(page("good")))
        .answers(Ok(page("stored")))
        .answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    ask(&mut service, Ask::write().cacheable()).await.unwrap();
    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "good");
}

#[tokio::test(start_paused = true)]
async fn a_write_ends_what_everybody_read_of_its_server_and_of_no_other() {
    let (script, mut service) = standard();
    let reads = [
        (Ask::read("a"), true),
        (Ask::read("a").by("bob"), true),
        (Ask::read("a").at("archive"), false),
    ];
    for (read, _) in &reads {
        script.answers(Ok(page("good")));
        ask(&mut service, read.clone()).await.unwrap();
    }

    script.answers(Ok(page("stored")));
    ask(&mut service, Ask::write()).await.unwrap();

    for (read, stale) in reads {
        script.answers(Err(down()));
        let answer = ask(&mut service, read.clone()).await.unwrap();
        assert_eq!(answer.source == Source::Degraded, stale, "{read:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_after_a_write_is_kept_again() {
    let (script, mut service) = standard();
    script
        .answers(Ok(page("old")))
        .answers(Ok(page("stored")))
        .answers(Ok(page("new")))
        .answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    ask(&mut service, Ask::write()).await.unwrap();
    ask(&mut service, Ask::read("a")).await.unwrap();
    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "new");
}

#[tokio::test(start_paused = true)]
async fn trap_p4_an_answer_that_a_write_overtook_is_not_kept() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut slow = call(&mut service, Ask::read("a"));
    let slow_answer = next(&mut handle).await;
    let mut write = call(&mut service, Ask::write());
    next(&mut handle).await.send_response(page("stored"));
    assert_ready!(write.poll()).unwrap();
    slow_answer.send_response(page("from before the write"));
    let live = assert_ready!(slow.poll()).unwrap();

    let mut failing = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_error(down());
    let answer = assert_ready!(failing.poll()).unwrap();

    assert_eq!(live.value.text, "from before the write");
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_after_a_write_is_not_given_an_answer_from_before_it() {
    let layer = FallbackLayer::new(chain(Settings::new()));
    let (mut service, mut handle) = mock::spawn_layer(layer);
    let mut first = call(&mut service, Ask::read("a"));
    next(&mut handle).await.send_response(page("old"));
    assert_ready!(first.poll()).unwrap();

    let mut slow = call(&mut service, Ask::read("a"));
    let slow_answer = next(&mut handle).await;
    let mut write = call(&mut service, Ask::write());
    next(&mut handle).await.send_response(page("stored"));
    assert_ready!(write.poll()).unwrap();
    assert_pending!(slow.poll());
    slow_answer.send_error(down());

    let answer = assert_ready!(slow.poll()).unwrap();
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_up_to_its_greatest_age_and_not_after() {
    let just = Duration::from_millis(1);
    for (wait, want) in [
        (seconds(600) - just, Some(seconds(600) - just)),
        (seconds(600), Some(seconds(600))),
        (seconds(600) + just, None),
    ] {
        let (script, mut service) = standard();
        script.answers(Ok(page("good"))).answers(Err(down()));
        ask(&mut service, Ask::read("a")).await.unwrap();
        advance(wait).await;

        let answer = ask(&mut service, Ask::read("a")).await.unwrap();

        let want = want.map_or(Source::Degraded, |age| Source::Cache { age });
        assert_eq!(answer.source, want, "after {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_came_from_the_cache_does_not_grow_younger() {
    let (script, mut service) = standard();
    script.answers(Ok(page("good")));
    ask(&mut service, Ask::read("a")).await.unwrap();

    for age in [200, 400, 600] {
        advance(seconds(200)).await;
        script.answers(Err(down()));
        let answer = ask(&mut service, Ask::read("a")).await.unwrap();
        assert_eq!(answer.source, Source::Cache { age: seconds(age) });
    }
    advance(seconds(200)).await;
    script.answers(Err(down()));
    let answer = ask(&mut service, Ask::read("a")).await.unwrap();
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_make_a_server_stale_and_forget_everything() {
    let (script, mut service) = standard();
    script.answers(Ok(page("good"))).answers(Err(down()));
    ask(&mut service, Ask::read("a")).await.unwrap();

    service.policy().store().raise("library");
    let stale = ask(&mut service, Ask::read("a")).await.unwrap();
    service.policy().store().clear();

    assert_eq!(stale.source, Source::Degraded);
    assert!(service.policy().store().is_empty());
}
