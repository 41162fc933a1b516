//! Faults that people reported, at the level of this layer. The server is a mock; what
//! would be a line in its ledger is a request that reached it.

use steadfast_classify::{BoxError, Class, Effect, Failure};
use steadfast_retry::Settings;
use tower::Layer;

mod support;
use support::{Answer, Request, Run, even, failed, layer, ms, run, run_on, secs, server};

/// An answer of the server that is an error, with its text.
fn answered(text: &'static str) -> Answer {
    Err(Failure::new(Class::Answered).with_source(BoxError::from(text)))
}

/// A 503, which does not prove that nothing ran.
fn unavailable() -> Answer {
    Err(Failure::new(Class::Unknown).with_source(BoxError::from("503")))
}

fn text(run: &Run) -> String {
    let source = std::error::Error::source(run.failure());
    source.expect("has a source").to_string()
}

#[tokio::test(start_paused = true)]
async fn a03_a_503_is_told_at_once_or_ridden_out_layers() {
    let layer = layer(Settings::new());

    let write = run(&layer, Request::write(), [unavailable()]).await;
    assert_eq!(write.took, ms(0));
    assert_eq!(text(&write), "503");

    let script = [unavailable(), unavailable(), unavailable(), Ok("200")];
    let read = run(&layer, Request::read(), script).await;
    assert_eq!(read.result.unwrap(), "200");
}

#[tokio::test(start_paused = true)]
async fn d02_replays_stay_inside_the_one_deadline_layers() {
    let layer = layer(Settings::new().with_max_retries(2));
    for effect in [Effect::ReadOnly, Effect::Idempotent] {
        let request = || Request::new(effect).due_in(secs(2));

        let once = run(&layer, request(), [failed(Class::Unknown), Ok("done")]).await;
        assert_eq!(once.result.as_deref().unwrap(), "done");

        // 0.5 s, then 1 s, each with up to a fifth more; a new deadline would allow more.
        let always = run(&layer, request(), vec![failed(Class::Unknown); 3]).await;
        assert!(always.took < secs(2), "{:?}", always.took);
        assert_eq!(always.failure().attempts(), 3);
        assert!(always.failure().may_have_run());

        let soon = Request::new(effect).due_in(secs(1));
        let cut = run(&layer, soon, vec![failed(Class::Unknown); 2]).await;
        assert!(cut.took < secs(1), "{:?}", cut.took);
    }
}

#[tokio::test(start_paused = true)]
async fn d05_an_answered_error_is_never_repeated_layers() {
    let layer = layer(Settings::new());
    for effect in [Effect::ReadOnly, Effect::Idempotent, Effect::NonIdempotent] {
        let request = || Request::new(effect);

        let is_error = run(&layer, request(), [Ok("isError: true")]).await;
        assert_eq!(is_error.result.unwrap(), "isError: true");

        for error in [
            "-32602: unknown parameter `qery`",
            "-32603: division by zero",
        ] {
            let run = run(&layer, request(), [answered(error)]).await;

            assert_eq!(text(&run), error, "the original text is kept");
            assert_eq!(run.took, ms(0));
            assert_eq!(run.failure().attempts(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g01_every_answered_call_reaches_the_server_once_layers() {
    let (server, mut handle) = server();
    let mut service = layer(Settings::new()).layer(server);
    let mut script = vec![Ok("isError: true"); 10];
    script.extend(vec![answered("-32602"); 10]);
    script.push(Ok("good"));

    for answer in script {
        let run = run_on(&mut service, &mut handle, Request::read(), [answer]).await;
        assert_eq!(run.took, ms(0));
    }
}

#[tokio::test(start_paused = true)]
async fn h01_a_refused_call_is_sent_again_after_what_the_server_asked_for_layers() {
    let refused = Failure::new(Class::Overloaded).with_retry_after(secs(1));
    let request = Request::write().due_in(secs(5));

    let run = run(&layer(Settings::new()), request, [Err(refused), Ok("done")]).await;

    assert_eq!(run.result.as_deref().unwrap(), "done");
    assert!(run.took >= secs(1) && run.took < secs(2), "{:?}", run.took);
}

#[tokio::test(start_paused = true)]
async fn d04_a_write_that_timed_out_is_not_sent_again_layers() {
    let run = run(&layer(even()), Request::write(), [failed(Class::Timeout)]).await;

    assert_eq!(run.took, ms(0));
    assert!(run.failure().may_have_run());
}
