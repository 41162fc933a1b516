//! What the layer writes on the span of a call. By itself in this file: a span of a test
//! beside it, which nobody sees, would be taken for one that nobody wants.

use std::{
    io,
    sync::{Arc, Mutex},
};

use steadfast_classify::{Class, ClassifyLayer, Failure, Origin, Phase};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tracing::{Instrument, field::Empty, info, info_span};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

#[tokio::test]
async fn class_phase_and_origin_are_on_the_span_that_has_a_place_for_them() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let service = ServiceBuilder::new()
        .layer(ClassifyLayer::new(|result| result))
        .service(service_fn(async |failure| match failure {
            None => Ok("pong"),
            Some(failure) => Err::<_, Failure>(failure),
        }));
    let call = async |failure| {
        let _ = service.oneshot(failure).await;
        info!("ended");
    };

    let broken = Failure::new(Class::Timeout)
        .with_phase(Phase::Read)
        .with_origin(&Origin::server("library").with_operation("fetch"));
    for (failure, fields) in [
        (None, "call: "),
        (
            Some(broken),
            r#"call{error.type="timeout" steadfast.phase="read" steadfast.origin="fetch" on "library"}: "#,
        ),
    ] {
        let span = info_span!(
            "call",
            error.type = Empty,
            steadfast.phase = Empty,
            steadfast.origin = Empty,
        );
        call(failure).instrument(span).await;

        assert_contains(&log.take(), fields);
    }
    // One that knows no such fields is left as it is.
    call(Some(Failure::new(Class::Unknown)))
        .instrument(info_span!("bare", id = 7))
        .await;
    assert_contains(&log.take(), "bare{id=7}: ");
}

fn assert_contains(log: &str, fields: &str) {
    assert!(log.contains(fields), "{fields} is not in {log}");
}

// === impl Log ===

impl Log {
    fn take(&self) -> String {
        let log = std::mem::take(&mut *self.0.lock().expect("no test panicked in it"));
        String::from_utf8(log).expect("text was written")
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self
            .0
            .lock()
            .map_err(|_| io::Error::other("a test panicked"))?;
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
