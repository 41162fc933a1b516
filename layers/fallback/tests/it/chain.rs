//! The links of the chain, in their order.

use std::sync::Arc;

use steadfast_classify::{Cause, Class, Failure, Phase, Source, Tag};
use steadfast_fallback::{Chain, FallbackLayer, Mark, NoStore, Settings};
use tokio::time::advance;
use tower::Layer as _;

use crate::support::{Ask, Page, Script, ask, chain, down, memory, page, seconds, standard, with};

#[tokio::test(start_paused = true)]
async fn a_live_answer_is_tagged_live_and_has_no_cause() {
    let (script, mut service) = standard();
    script.answers(Ok(page("live")));

    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "live");
    assert_eq!(answer.source, Source::Live);
    assert_eq!(answer.cause, None);
    assert_eq!(answer.value.tags, [(Source::Live, None)]);
}

#[tokio::test(start_paused = true)]
async fn the_last_good_answer_comes_before_the_default() {
    let (script, mut service) = standard();
    script
        .answers(Ok(page("first")))
        .answers(Ok(page("good")))
        .answers(Err(down()));
    ask(&mut service, Ask::read("a")).await.unwrap();
    ask(&mut service, Ask::read("a")).await.unwrap();
    advance(seconds(3)).await;

    let answer = ask(&mut service, Ask::read("a").or("default"))
        .await
        .unwrap();

    let cached = Source::Cache { age: seconds(3) };
    assert_eq!(answer.value.text, "good");
    assert_eq!(answer.source, cached);
    // Tagged once: what is kept carries no tag of its own.
    assert_eq!(answer.value.tags, [(cached, Some(Class::NotSent))]);
}

#[tokio::test(start_paused = true)]
async fn the_default_comes_before_unavailable() {
    let (script, mut service) = standard();
    script.answers(Err(down()));

    let answer = ask(&mut service, Ask::read("a").or("default"))
        .await
        .unwrap();

    assert_eq!(answer.value.text, "default");
    assert_eq!(answer.source, Source::Degraded);
    assert_eq!(
        answer.value.tags,
        [(Source::Degraded, Some(Class::NotSent))]
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_default_is_a_default() {
    let (script, mut service) = standard();
    script.answers(Err(down()));

    let answer = ask(&mut service, Ask::read("a").or("")).await.unwrap();

    assert_eq!(answer.value.text, "");
    assert!(!answer.value.error);
}

#[tokio::test(start_paused = true)]
async fn unavailable_is_the_last_resort() {
    let (script, mut service) = standard();
    script.answers(Err(down()));

    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "unavailable: not_sent");
    assert_eq!(answer.source, Source::Degraded);
    assert_eq!(
        answer.value.tags,
        [(Source::Degraded, Some(Class::NotSent))]
    );
}

#[tokio::test(start_paused = true)]
async fn explicit_ends_in_the_failure_after_the_other_links() {
    let (script, mut service) = with(Settings::new().with_explicit(true));
    script
        .answers(Err(down()))
        .answers(Err(down()))
        .answers(Ok(page("good")))
        .answers(Err(down()));

    let nothing = ask(&mut service, Ask::read("a")).await;
    let default = ask(&mut service, Ask::read("a").or("default")).await;
    ask(&mut service, Ask::read("a")).await.unwrap();
    let cached = ask(&mut service, Ask::read("a")).await;

    assert_eq!(nothing.unwrap_err().class(), Class::NotSent);
    assert_eq!(default.unwrap().value.text, "default");
    assert_eq!(cached.unwrap().value.text, "good");
}

#[tokio::test(start_paused = true)]
async fn switched_off_it_keeps_and_gives_nothing_and_still_tags() {
    let (script, mut service) = with(Settings::new().with_enabled(false));
    script.answers(Ok(page("good"))).answers(Err(down()));

    let live = ask(&mut service, Ask::read("a")).await.unwrap();
    let failed = ask(&mut service, Ask::read("a").or("default")).await;

    assert_eq!(live.value.tags, [(Source::Live, None)]);
    assert_eq!(failed.unwrap_err().class(), Class::NotSent);
    assert!(service.policy().store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_class_falls_back_or_is_passed_on() {
    for (failure, covered) in [
        (Failure::new(Class::NotSent), true),
        (Failure::new(Class::NotSent).with_permanent(), true),
        (Failure::new(Class::Overloaded), true),
        (Failure::new(Class::Timeout), true),
        (Failure::new(Class::Unknown), true),
        (Failure::new(Class::Rejected), true),
        (Failure::new(Class::Rejected).with_permanent(), false),
        (Failure::new(Class::Answered), false),
        (Failure::new(Class::Cancelled), false),
    ] {
        let (script, mut service) = standard();
        script
            .answers(Ok(page("good")))
            .answers(Err(failure.clone()));
        ask(&mut service, Ask::read("a")).await.unwrap();

        let answer = ask(&mut service, Ask::read("a").or("default")).await;

        match answer {
            Ok(answer) => {
                assert!(covered, "{failure:?}");
                assert_eq!(answer.value.text, "good", "{failure:?}");
            }
            Err(passed) => {
                assert!(!covered, "{failure:?}");
                assert_eq!(passed.class(), failure.class(), "{failure:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_cause_says_what_happened_to_the_call() {
    let (script, mut service) = standard();
    let mut failure = Failure::new(Class::Timeout)
        .with_phase(Phase::Read)
        .with_retry_after(seconds(7));
    failure.set_attempts(3);
    script.answers(Err(failure.clone()));

    let answer = ask(&mut service, Ask::write()).await.unwrap();

    let cause = answer.cause.unwrap();
    assert_eq!(cause, Cause::from(&failure));
    assert_eq!(cause.phase, Some(Phase::Read));
    assert_eq!(cause.retry_after, Some(seconds(7)));
    assert_eq!(cause.attempts, 3);
    assert!(cause.may_have_run);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_tagged_still_has_its_source() {
    let script = Script::default();
    let mut service = FallbackLayer::new(chain(Settings::new()).untagged()).layer(script.clone());
    script
        .answers(Ok(page("good")))
        .answers(Err(down()))
        .answers(Err(down()));

    let live = ask(&mut service, Ask::read("a")).await.unwrap();
    let cached = ask(&mut service, Ask::read("a")).await.unwrap();
    let nothing = ask(&mut service, Ask::read("b")).await;

    assert!(live.is_live() && live.value.tags.is_empty());
    assert_eq!(cached.source, Source::Cache { age: seconds(0) });
    assert!(cached.value.tags.is_empty());
    assert_eq!(nothing.unwrap_err().class(), Class::NotSent);
}

/// What a type that is somebody else's would need.
#[derive(Clone, Copy)]
struct ErrorsByText;

impl Mark<Page> for ErrorsByText {
    fn tag(&self, value: &mut Page, source: &Source, cause: Option<&Cause>) {
        value.tag(source, cause);
    }

    fn unavailable(&self, _cause: &Cause) -> Option<Page> {
        Some(page("closed"))
    }

    fn is_error(&self, value: &Page) -> bool {
        value.text.starts_with("error")
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_of_ones_own_decides_what_an_error_is() {
    let script = Script::default();
    let chain = chain(Settings::new()).with_mark(ErrorsByText);
    let mut service = FallbackLayer::new(chain).layer(script.clone());
    script.answers(Ok(page("error 7"))).answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "closed");
}

#[tokio::test(start_paused = true)]
async fn a_chain_without_a_store_begins_with_the_default() {
    let script = Script::default();
    let chain = Chain::new(Settings::new(), NoStore::new()).unwrap();
    let mut service = FallbackLayer::new(chain).layer(script.clone());
    script.answers(Ok(page("good"))).answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    let answer = ask(&mut service, Ask::read("a").or("default"))
        .await
        .unwrap();

    assert_eq!(answer.value.text, "default");
}

#[test]
fn a_setting_that_cannot_be_is_named() {
    for (settings, want) in [
        (Settings::new().with_max_stale(seconds(0)), "max_stale"),
        (
            Settings::new().with_lookup_limit(seconds(0)),
            "lookup_limit",
        ),
    ] {
        let error = Chain::new(settings, memory()).unwrap_err().to_string();

        assert!(error.starts_with(want), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closure_answers_what_is_covered_and_only_that() {
    let script = Script::default();
    let policy = |failure: &Failure| (failure.attempts() == 1).then(|| page("sorry"));
    let mut service = FallbackLayer::new(policy).layer(script.clone());
    let mut repeated = down();
    repeated.set_attempts(2);
    script
        .answers(Err(down()))
        .answers(Err(Failure::new(Class::Answered)))
        .answers(Err(repeated));

    let covered = ask(&mut service, Ask::read("a")).await.unwrap();
    let answered = ask(&mut service, Ask::read("a")).await;
    let refused = ask(&mut service, Ask::read("a")).await;

    assert_eq!(covered.value.text, "sorry");
    assert_eq!(covered.source, Source::Degraded);
    assert_eq!(covered.cause.unwrap().class, Class::NotSent);
    assert_eq!(answered.unwrap_err().class(), Class::Answered);
    assert_eq!(refused.unwrap_err().attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_default_is_not_copied_for_a_call_that_succeeds() {
    let (script, mut service) = standard();
    script.answers(Ok(page("good")));
    let request = Ask::read("a").or("default");
    let default = Arc::clone(request.default.as_ref().unwrap());

    ask(&mut service, request).await.unwrap();

    assert_eq!(Arc::strong_count(&default), 1);
}
