//! Servers that live in this program.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::{BoxFuture, FutureExt};
use tokio::io::DuplexStream;

/// A server that lives in this program, and is made anew for each connection.
///
/// Its clones are the same server. Its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct InProcess {
    number: u64,
    serve: Arc<Serve>,
}

type Serve = dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync;

/// Tells servers apart. An address would not do: it is used again.
static NEXT: AtomicU64 = AtomicU64::new(0);

// === impl InProcess ===

impl InProcess {
    pub(crate) fn new<F>(serve: impl Fn(DuplexStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            serve: Arc::new(move |connection| serve(connection).boxed()),
        }
    }

    /// The same for clones, and for nothing else in this process.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Serves one connection.
    pub(crate) fn serve(&self, connection: DuplexStream) -> BoxFuture<'static, ()> {
        (self.serve)(connection)
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
