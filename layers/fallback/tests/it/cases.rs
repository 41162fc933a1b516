//! Faults that people reported.

use steadfast_classify::{Class, Source};
use steadfast_fallback::Settings;
use tokio::time::advance;

use crate::support::{Ask, Page, ask, down, page, seconds, standard, with};

fn error(text: &str) -> Page {
    Page {
        error: true,
        ..page(text)
    }
}

#[tokio::test(start_paused = true)]
async fn q01_an_error_result_is_never_kept_layers() {
    let (script, mut service) = standard();
    script
        .answers(Ok(error("403")))
        .answers(Ok(page("good")))
        .answers(Ok(error("403 again")))
        .answers(Err(down()));

    let first = ask(&mut service, Ask::read("a")).await.unwrap();
    let second = ask(&mut service, Ask::read("a")).await.unwrap();
    advance(seconds(4)).await;
    let third = ask(&mut service, Ask::read("a")).await.unwrap();
    let fourth = ask(&mut service, Ask::read("a")).await.unwrap();

    // Errors are answers: they are passed on live, and the next call asks again.
    assert_eq!(
        (first.value.text.as_str(), first.source),
        ("403", Source::Live)
    );
    assert_eq!(
        (second.value.text.as_str(), second.source),
        ("good", Source::Live)
    );
    assert_eq!(
        (third.value.text.as_str(), third.source),
        ("403 again", Source::Live)
    );
    assert_eq!(fourth.value.text, "good");
    assert_eq!(fourth.source, Source::Cache { age: seconds(4) });
    assert_eq!(script.calls(), 4);
}

#[tokio::test(start_paused = true)]
async fn q01_an_error_result_alone_leaves_nothing_to_give_layers() {
    let (script, mut service) = standard();
    script.answers(Ok(error("403"))).answers(Err(down()));

    ask(&mut service, Ask::read("a")).await.unwrap();
    let answer = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(answer.value.text, "unavailable: not_sent");
    assert_eq!(answer.source, Source::Degraded);
}

#[tokio::test(start_paused = true)]
async fn q03_a_stale_answer_is_not_served_without_limit_layers() {
    let settings = Settings::new().with_max_stale(seconds(10));
    let (script, mut service) = with(settings);
    script
        .answers(Ok(page("good")))
        .answers(Err(down()))
        .answers(Err(down()));
    ask(&mut service, Ask::read("a")).await.unwrap();

    advance(seconds(5)).await;
    let at_5 = ask(&mut service, Ask::read("a")).await.unwrap();
    advance(seconds(6)).await;
    let at_11 = ask(&mut service, Ask::read("a")).await.unwrap();

    assert_eq!(at_5.value.text, "good");
    assert_eq!(at_5.source, Source::Cache { age: seconds(5) });
    assert_eq!(at_11.source, Source::Degraded);
    assert_eq!(at_11.cause.unwrap().class, Class::NotSent);
    assert_eq!(script.calls(), 3);
}
