//! What is told of admissions.

mod support;

use std::{
    io,
    num::NonZeroUsize,
    sync::{Arc, Mutex},
};

use steadfast_budget::{Budget, Global, Keyed, Mode, RetryBudget};
use support::{Request, Reserving, global, limit, ms, send};
use tokio::time;
use tokio_test::{assert_pending, task};
use tower::{Service, retry::budget::Budget as _};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// What was written, one line for each event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

#[tokio::test(start_paused = true)]
async fn a_run_of_rejections_is_one_warning() {
    let (lines, _guard) = listen();
    let mut service = Budget::new(Reserving::new(), global("1/h"));
    send(&mut service, Request::of(1)).await.unwrap();
    assert_eq!(
        lines.take(),
        Vec::<String>::new(),
        "nothing of what is admitted"
    );

    for _ in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap_err();
    }
    time::advance(ms(29_999)).await;
    send(&mut service, Request::of(1)).await.unwrap_err();

    let told = lines.take();
    assert_eq!(
        levels(&told),
        ["WARN", "DEBUG", "DEBUG", "DEBUG"],
        "{told:?}"
    );
    assert!(told[0].contains("limit exhausted"), "{}", told[0]);
    assert!(told[0].contains("limit=\"all\""), "{}", told[0]);
    assert!(told[0].contains("retry_in=3600s"), "{}", told[0]);

    time::advance(ms(30_000)).await;
    send(&mut service, Request::of(1)).await.unwrap_err();
    assert_eq!(
        levels(&lines.take()),
        ["WARN"],
        "a new run after a quiet time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_only_warns_tells_what_it_would_do() {
    let (lines, _guard) = listen();
    let limits = Global::new(limit("all", "1/h").with_mode(Mode::Warn));
    let mut service = Budget::new(Reserving::new(), limits);

    for _ in 0..3 {
        send(&mut service, Request::of(1)).await.unwrap();
    }

    let told = lines.take();
    assert_eq!(levels(&told), ["WARN", "DEBUG"], "{told:?}");
    assert!(told[0].contains("would be exhausted"), "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_told_only_if_it_is_shown() {
    for shown in [false, true] {
        let (lines, _guard) = listen();
        let keyed = Keyed::new(limit("session", "1/h"), |request: &Request| request.session);
        let limits = if shown {
            keyed.with_shown_keys()
        } else {
            keyed
        };
        let mut service = Budget::new(Reserving::new(), limits).with_max_wait(ms(1));
        send(&mut service, Request::of(4_711)).await.unwrap();

        send(&mut service, Request::of(4_711)).await.unwrap_err();

        let told = lines.take();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].contains("4711"), shown, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_told_once() {
    let (lines, _guard) = listen();
    let mut service = Budget::new(Reserving::new(), global("1/s")).with_max_wait(ms(5_000));
    send(&mut service, Request::of(1)).await.unwrap();

    let mut waiter = task::spawn(service.call(Request::of(1)));
    for _ in 0..5 {
        assert_pending!(waiter.poll());
    }

    let told = lines.take();
    assert_eq!(levels(&told), ["DEBUG"], "{told:?}");
    assert!(told[0].contains("wait=1s"), "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn too_many_keys_are_told() {
    let (lines, _guard) = listen();
    let limits = Keyed::new(limit("session", "10/s"), |request: &Request| {
        request.session
    })
    .with_max_keys(NonZeroUsize::MIN);
    let mut service = Budget::new(Reserving::new(), limits);

    for session in 0..3 {
        send(&mut service, Request::of(session)).await.unwrap();
    }

    let told = lines.take();
    assert_eq!(levels(&told), ["WARN", "DEBUG"], "{told:?}");
    assert!(told[0].contains("max_keys=1"), "{}", told[0]);
}

#[tokio::test(start_paused = true)]
async fn a_used_up_retry_budget_is_told() {
    let (lines, _guard) = listen();
    let budget = RetryBudget::default();

    while budget.withdraw() {}
    budget.withdraw();

    let told = lines.take();
    assert_eq!(levels(&told), ["WARN", "DEBUG"], "{told:?}");
    assert!(told[0].contains("retry budget exhausted"), "{}", told[0]);
}

fn levels(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// Listens to what this thread tells, until the guard is dropped.
fn listen() -> (Lines, DefaultGuard) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .without_time()
        .with_writer(lines.clone())
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

// === impl Lines ===

impl Lines {
    fn take(&self) -> Vec<String> {
        let written = std::mem::take(&mut *self.0.lock().expect("not poisoned"));
        let text = String::from_utf8(written).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
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
