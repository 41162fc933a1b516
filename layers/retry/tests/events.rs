//! What is told about retries.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    io,
    sync::{Arc, Mutex},
};

use steadfast_classify::{BoxError, Class, Failure, Origin};
use tower::{Layer, ServiceExt};
use tracing::Level;

mod support;
use support::{Answer, Counting, Request, even, failed, layer, ms, run, secs};

/// Where the events of a test go.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

// === impl Lines ===

impl Lines {
    fn all(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records what this thread tells until it is dropped.
fn record() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

#[tokio::test(start_paused = true)]
async fn a_retry_and_a_recovery_are_told_with_their_fields() {
    let (lines, _guard) = record();
    let failure = Failure::new(Class::NotSent)
        .with_origin(&Origin::server("shop").with_operation("order"))
        .with_source(BoxError::from("secret argument"));

    run(
        &layer(even()),
        Request::write(),
        [Err(failure), Ok("secret result")],
    )
    .await;

    assert_eq!(
        lines.all(),
        [
            "DEBUG steadfast_retry::observe: retrying attempt=1 class=\"not_sent\" \
             origin=\"order\" on \"shop\" wait=100ms",
            "DEBUG steadfast_retry::observe: recovered attempt=2",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_that_nobody_classified_is_told_as_unknown() {
    let (lines, _guard) = record();
    let (mock, mut handle) = tower_test::mock::pair::<Request, ()>();
    let service = layer(even().with_max_retries(1)).layer(mock);
    let server = async {
        let (_, reply) = handle.next_request().await.unwrap();
        reply.send_error("secret");
        let (_, reply) = handle.next_request().await.unwrap();
        reply.send_response(());
    };

    let (result, ()) = tokio::join!(service.oneshot(Request::read()), server);

    result.unwrap();
    assert_eq!(
        lines.all()[0],
        "DEBUG steadfast_retry::observe: retrying attempt=1 class=\"unknown\" wait=100ms"
    );
}

#[tokio::test(start_paused = true)]
async fn why_a_call_was_given_up_is_told() {
    let busy: Answer = Err(Failure::new(Class::Overloaded).with_retry_after(secs(60)));
    let mut opened = Failure::new(Class::Unknown);
    opened.mark_circuit_open(None);
    let once = layer(even().with_max_retries(1));
    let broke = layer(even()).with_budget(Counting::up_to(0));

    for (request, script, want) in [
        (
            Request::write(),
            vec![failed(Class::NotSent); 2],
            "WARN gave up attempt=2 class=\"not_sent\" reason=\"exhausted\"",
        ),
        (
            Request::write(),
            vec![busy],
            "DEBUG gave up attempt=1 class=\"overloaded\" reason=\"max_wait\"",
        ),
        (
            Request::write(),
            vec![Err(opened)],
            "DEBUG gave up attempt=1 class=\"unknown\" reason=\"circuit_open\"",
        ),
        (
            Request::write().due_in(ms(50)),
            vec![failed(Class::NotSent)],
            "DEBUG gave up attempt=1 class=\"not_sent\" reason=\"deadline\"",
        ),
    ] {
        let (lines, _guard) = record();
        run(&once, request, script).await;
        assert_eq!(last(&lines), want);
    }

    let (lines, _guard) = record();
    run(&broke, Request::write(), [failed(Class::NotSent)]).await;
    let want = "WARN gave up attempt=1 class=\"not_sent\" reason=\"budget\"";
    assert_eq!(last(&lines), want);
}

/// The last event without its target and the origin, which is not known here.
fn last(lines: &Lines) -> String {
    let all = lines.all();
    let line = all.last().expect("something was told");
    line.replace("steadfast_retry::observe: ", "")
        .replace("origin=call ", "")
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_of_a_call_that_must_not_or_need_not_be_repeated() {
    let (lines, _guard) = record();
    let off = layer(even().with_max_retries(0));

    run(&layer(even()), Request::write(), [Ok("done")]).await;
    run(&layer(even()), Request::write(), [failed(Class::Unknown)]).await;
    run(&layer(even()), Request::read(), [failed(Class::Answered)]).await;
    run(&off, Request::read(), [failed(Class::NotSent)]).await;

    assert_eq!(lines.all(), [""; 0]);
}
