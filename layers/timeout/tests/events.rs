//! What operators read. A test binary of its own: which events are wanted is cached for
//! the whole process, and tests beside this one want none.
#![allow(
    clippy::unwrap_used,
    reason = "these are tests, and clippy does not see it in their helpers"
)]

use std::{
    future::pending,
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use steadfast_classify::{Call, CallContext, Failure, Origin};
use steadfast_timeout::{DeadlineLayer, TimeoutLayer};
use tower::{Layer, ServiceExt, service_fn};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Debug)]
struct Req(
    CallContext,
    #[expect(dead_code, reason = "only `Debug` reads it")] &'static str,
);

#[tokio::test(start_paused = true)]
async fn each_limit_that_runs_out_is_one_event() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .without_time()
        .with_ansi(false)
        .with_writer(lines.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let stuck = service_fn(|request: Req| async move {
        let flight = request.context().unwrap().flight().unwrap();
        flight.describe(Origin::server("files").with_operation("read"));
        assert!(flight.queued());
        pending::<Result<(), Failure>>().await
    });
    let request = || Req(CallContext::tracked(), "secret");

    let timed = TimeoutLayer::default().layer(stuck);
    assert!(timed.oneshot(request()).await.is_err());
    let ended = DeadlineLayer::new(Duration::from_millis(1_500)).unwrap();
    let hangs = service_fn(|_: Req| pending::<Result<(), Failure>>());
    assert!(ended.layer(hangs).oneshot(request()).await.is_err());

    assert_eq!(
        lines.all(),
        [
            "DEBUG steadfast_timeout::observe: attempt ran out of time class=\"not_sent\" \
             phase=\"connect\" limit=5s elapsed=5s server=\"files\" operation=\"read\"",
            "DEBUG steadfast_timeout::observe: call passed its deadline class=\"timeout\" \
             phase=\"total\" limit=1.5s elapsed=1.5s",
        ]
    );
}

impl Call for Req {
    fn context(&self) -> Option<&CallContext> {
        Some(&self.0)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.0)
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn all(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
